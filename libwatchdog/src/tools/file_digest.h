/// \file
/// The SHA-256 of a file, to tell whether it was changed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "watchdog/result.h"

namespace watchdog {

/// 64 hexadecimal digits; empty: there is no file. Follows no link in the last part, reads regular
/// files only, in pieces. Errors: `invalid` (something else is there), `unavailable`. Thread-safe.
[[nodiscard]] Result<std::optional<std::string>> file_digest(const std::filesystem::path& path);

}  // namespace watchdog
