/// \file
/// A temporary folder below $TMPDIR.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Deleted with this object. Only this user may enter it: mkdtemp(3) chooses a new name, mode 0700.
class ScratchFolder {
 public:
  /// Errors: `exhausted`.
  [[nodiscard]] static Result<ScratchFolder> make(const std::string& name) {
    std::error_code absent;
    auto pattern =
        (std::filesystem::temp_directory_path(absent) / ("watchdog-" + name + "-XXXXXX")).string();
    if (absent) {
      return Error{ErrorCode::exhausted, "no temporary directory: " + absent.message()};
    }
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
