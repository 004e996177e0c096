/// \file
/// A temporary folder for a monitor that shows something and ends.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Deleted with this object. Only its owner may read it.
class ScratchFolder {
 public:
  /// Errors: `exhausted`.
  [[nodiscard]] static Result<ScratchFolder> make(const std::string& name) {
    auto pattern =
        (std::filesystem::temp_directory_path() / ("watchdog-" + name + "-XXXXXX")).string();
    if (mkdtemp(pattern.data()) == nullptr) {
      return Error{ErrorCode::exhausted,
                   std::string("no temporary directory: ") + std::strerror(errno)};
    }
    return ScratchFolder(std::move(pattern));
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  ScratchFolder& operator=(ScratchFolder&&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace watchdog::monitor
