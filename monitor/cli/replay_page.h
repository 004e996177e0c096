/// \file
/// Shows replayed runs as pages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "watchdog/policy.h"

namespace watchdog::monitor {

/// Runs a monitor on the database, on a free port of this machine, until SIGINT or SIGTERM. Prints
/// the URL: of the session, or of the list if there are several. Opens it in a browser where there
/// is a display. Nothing is deleted for its age, and no alert is sent. `policy` as in the settings.
/// Returns the exit code.
[[nodiscard]] int show_replayed(const std::filesystem::path& database,
                                const std::vector<std::string>& sessions,
                                const PolicyPatch& policy);

}  // namespace watchdog::monitor
