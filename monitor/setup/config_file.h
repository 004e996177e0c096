/// \file
/// Reads and replaces a configuration file of another program.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// A larger file is refused. Claude Code keeps histories in the file of its settings.
inline constexpr std::size_t config_bytes_max = 16 * 1'048'576;

/// A plain value.
struct ConfigFile {
  std::filesystem::path path;  ///< Behind all links: the file that is replaced.
  bool exists = false;
  std::string text{};
  mode_t mode = 0600;  ///< Of a new file: only its owner may read it.
};

/// Returns the file; a missing one has no text. Links are followed. Errors: `unavailable`,
/// `invalid` (not a regular file, not UTF-8), `exhausted` (above `config_bytes_max`). The messages
/// name the file. Thread-safe.
[[nodiscard]] Result<ConfigFile> read_config(const std::filesystem::path& path);

/// Refuses a file that links lead out of the folder: the author of a project could have them lead
/// to any file of this user. Errors: `invalid`.
[[nodiscard]] Result<void> check_inside(const ConfigFile& file,
                                        const std::filesystem::path& folder);

/// Errors: `invalid`: nobody may write the file.
[[nodiscard]] Result<void> check_writable(const ConfigFile& read);

/// Replaces the file by one with this text and the same mode and owner, durably and at once: it is
/// never seen half-written. Makes missing folders. Errors: `conflict` (it changed since it was
/// read), `unavailable`; as check_writable(). Thread-safe.
[[nodiscard]] Result<void> write_config(const ConfigFile& read, const std::string& text);

/// Deletes the file. Errors: `conflict`, `unavailable`. Thread-safe.
[[nodiscard]] Result<void> delete_config(const ConfigFile& read);

/// Returns the file beside it that keeps the bytes from before the first install.
[[nodiscard]] std::filesystem::path backup_of(const ConfigFile& file);

}  // namespace watchdog::monitor
