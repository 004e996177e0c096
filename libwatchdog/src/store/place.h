/// \file
/// Checks the place of a database, and which files can be one.
#pragma once

#include <filesystem>

#include "watchdog/result.h"

namespace watchdog {

/// Returns the folder for this user's state, by XDG_STATE_HOME or HOME; empty: neither is set.
/// Thread-safe.
[[nodiscard]] std::filesystem::path state_folder();

/// Makes the file (mode 0600) and its directory (mode 0700) if they are missing. This process must
/// be able to trust an existing file: a regular file with one link, owned by the effective user or
/// by root. The same holds for the files that SQLite and the store keep beside it. Files that
/// others may read or write get the mode 0600, once they are known to be ours. Errors: `invalid`
/// (an empty path, not such a file, a folder of another user, or a network filesystem), `corrupt`
/// (no database), `unavailable`.
[[nodiscard]] Result<void> make_file(const std::filesystem::path& path);

/// Checks that the file can be read as a database, and changes nothing. Errors: `not_found`,
/// `invalid` (no regular file, or more than one link), `unavailable`.
[[nodiscard]] Result<void> check_file(const std::filesystem::path& path);

/// Returns the file behind symbolic links, beside which all other files of a database are; the path
/// itself if there is no file.
[[nodiscard]] std::filesystem::path real_file(const std::filesystem::path& path);

}  // namespace watchdog
