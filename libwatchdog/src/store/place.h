/// \file
/// Where databases lie.
#pragma once

#include <filesystem>

#include "watchdog/result.h"

namespace watchdog {

/// Makes the file (mode 0600) and its directory (mode 0700) if they are missing. Errors: `invalid`
/// (a network filesystem), `unavailable`.
[[nodiscard]] Result<void> make_file(const std::filesystem::path& path);

}  // namespace watchdog
