/// \file
/// The place of the monitor and of the database. Each command finds both in the same order: a flag,
/// the environment, the settings file, the default.
#pragma once

#include <cstdint>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Which of the two a command uses.
enum class Uses : std::uint8_t {
  either,   ///< A monitor, unless a database is named.
  monitor,  ///< A monitor, whatever database is named.
  file      ///< A database, unless a monitor is named.
};

/// Returns the URL by which this machine reaches a monitor with these settings. A port that the
/// system chooses is unknown, so 0 gives the default port.
[[nodiscard]] std::string server_of(const MonitorSettings& settings);

/// Fills in the server or the database that `options` do not name; the other one is empty then.
/// Reads the settings only if neither a flag nor the environment names one. Errors: the exit code,
/// after it printed the mistakes of the settings.
[[nodiscard]] Result<void, int> find_place(Endpoint::Options& options, Uses uses);

}  // namespace watchdog::monitor
