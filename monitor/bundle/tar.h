/// \file
/// Archives in the format ustar, which `tar` reads everywhere. In memory, for small files alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// A file of an archive. A plain value.
struct NamedFile {
  std::string name;  ///< ASCII without a slash, at most `file_name_max` bytes.
  std::string content;

  friend bool operator==(const NamedFile&, const NamedFile&) = default;
};

/// Bytes of the name of a file, and of the folder that the archive puts it into.
inline constexpr std::size_t file_name_max = 40;
inline constexpr std::size_t folder_name_max = 58;

/// Returns the text as a name that every system takes: letters, digits, `.`, `_` and `-`. Each run
/// of other bytes becomes one `-`, and the name does not begin with `-` or `.`. At most `bytes_max`
/// bytes; `session` if nothing is left. Pure.
[[nodiscard]] std::string file_name_of(std::string_view text, std::size_t bytes_max);

/// Returns an archive of the files in one folder, with mode 0600 and no owner. The same files and
/// time give the same bytes. REQUIRES: names within their limits. Pure.
[[nodiscard]] std::string tar_of(std::string_view folder, const std::vector<NamedFile>& files,
                                 WallTime at);

/// Returns the files of an archive that tar_of() made, without their folder. Nothing: it is not
/// one, or it is cut. Pure.
[[nodiscard]] std::optional<std::vector<NamedFile>> files_in_tar(std::string_view archive);

}  // namespace watchdog::monitor
