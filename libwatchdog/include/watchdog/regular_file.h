/// \file
/// A small file, read whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "watchdog/result.h"

namespace watchdog {

/// Whose eyes a file may be for.
enum class Readers : std::uint8_t { anybody, owner };

/// Never waits, whatever the path names. Errors: `not_found`, `unavailable` (cannot be opened or
/// read), `invalid` (no regular file; others may read it), `exhausted` (above `bytes_max`). The
/// messages go on after the path.
[[nodiscard]] Result<std::string> read_regular_file(const std::filesystem::path& path,
                                                    std::size_t bytes_max, Readers readers);

}  // namespace watchdog
