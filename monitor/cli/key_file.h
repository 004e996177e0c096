/// \file
/// The file that holds the key of a model's server.
#pragma once

#include <filesystem>
#include <string>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Returns the key in a file that only its owner can read; empty for an empty path.
/// Errors: `invalid`, for the field `field`.
[[nodiscard]] Result<std::string> key_from(const std::filesystem::path& path,
                                           const std::string& field);

}  // namespace watchdog::monitor
