/// \file
/// Follows a path below some directories, part by part. It opens each part by itself, and reads and
/// follows links itself. `..` goes back to the directory that it opened before. So no change made
/// meanwhile leads out, on any kernel.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "files/open_file.h"
#include "watchdog/result.h"

namespace watchdog {

/// A directory that paths are followed below.
struct Root {
  OpenFile directory;
  std::filesystem::path path;     ///< Absolute, without links.
  std::filesystem::path spelled;  ///< Absolute, as it was given; paths may begin so, too.
};

/// The destination of a path.
struct Place {
  const Root* root = nullptr;
  std::vector<std::string> names{};  ///< From the root on.
  std::size_t missing = 0;           ///< So many of them, the last ones, are not there.
  std::vector<OpenFile> above{};     ///< Its directories below the root, and itself if it is one.
  OpenFile file{};  ///< An existing file that is not a directory: to inspect, not to read.

  [[nodiscard]] const OpenFile& directory() const {
    return above.empty() ? root->directory : above.back();
  }
  [[nodiscard]] std::filesystem::path path() const;
};

/// Errors: `invalid` (leads out, through something that is not a directory, or is too long),
/// `unavailable`.
[[nodiscard]] Result<Place> walk(const std::vector<Root>& roots, std::string_view path);

}  // namespace watchdog
