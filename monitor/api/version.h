/// \file
/// What this program is made of.
#pragma once

#include <string>

namespace watchdog::monitor {

/// Returns the program's version.
[[nodiscard]] std::string own_version();

/// Returns a JSON object for `--version --json`. `commit` is null if it is not known. `sqlite` and
/// `openssl` are the libraries that this process runs with.
[[nodiscard]] std::string versions_as_json();

}  // namespace watchdog::monitor
