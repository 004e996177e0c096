/// \file
/// Reads a small file in full.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "watchdog/result.h"

namespace watchdog {

/// The users that may read a file. `owner`: it holds a secret, so it must belong to this process's
/// user or root, and no other user may read it.
enum class Readers : std::uint8_t { anybody, owner };

/// Never blocks, whatever the path names. Errors: `not_found`, `unavailable` (cannot be opened or
/// read), `invalid` (not a regular file; others may read or own it), `exhausted` (above
/// `bytes_max`). The messages are to follow the path.
[[nodiscard]] Result<std::string> read_regular_file(const std::filesystem::path& path,
                                                    std::size_t bytes_max, Readers readers);

}  // namespace watchdog
