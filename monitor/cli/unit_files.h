/// \file
/// systemd units of one user for this program, as text.
#pragma once

#include <string>
#include <vector>

#include "watchdog/settings.h"

namespace watchdog::monitor {

/// A unit. A plain value.
struct UnitFile {
  std::string name;  ///< `watchdog-monitor.service`
  std::string text;
};

/// Returns the service and the socket that holds its port. `program`: absolute path; `arguments`:
/// further words for `serve`. Pure.
[[nodiscard]] std::vector<UnitFile> user_units(const MonitorSettings& own,
                                               const std::string& program,
                                               const std::vector<std::string>& arguments);

/// Returns true if `service install` wrote the text.
[[nodiscard]] bool is_own_unit(const std::string& text);

}  // namespace watchdog::monitor
