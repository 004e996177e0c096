/// \file
/// Open files, relative to open directories. Symbolic links are never followed and nothing blocks:
/// another process may change what a name refers to.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Closed with its object. Operations give 0 or the number of the error. Thread-safe, but for
/// moves.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int fd) noexcept : fd_(fd) {}
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

  /// All of it, wherever the file's own position is.
  [[nodiscard]] int write_at(std::string_view bytes, std::uint64_t offset) const noexcept;
  /// At the file's position; at its end where it was opened so.
  [[nodiscard]] int write(std::string_view bytes) const noexcept;
  /// Less than `size` only at the file's end; below 0: errno says why.
  [[nodiscard]] ssize_t read_at(char* into, std::size_t size, std::uint64_t offset) const noexcept;
  [[nodiscard]] int sync() const noexcept;

 private:
  int fd_ = -1;
};

/// After a failure the file is closed, and errno has the cause.
[[nodiscard]] OpenFile open_at(const OpenFile& directory, const std::string& name, int flags,
                               mode_t mode = 0) noexcept;
/// The directory that a path lies in. Links on the way to it are followed.
[[nodiscard]] OpenFile directory_of(const std::filesystem::path& path) noexcept;
/// A directory of this user in another, made (0700) if it is missing.
[[nodiscard]] Result<OpenFile> open_private_directory(const OpenFile& parent,
                                                      const std::string& name,
                                                      const std::string& shown);
/// The same for one that a person chose: links to it are followed, parents made with the usual
/// mode. Errors: `invalid` (no directory of this user), `unavailable`, `exhausted`.
[[nodiscard]] Result<OpenFile> open_chosen_directory(const std::filesystem::path& path);

/// Without `.` and `..`, in no order. Empty if it cannot be read.
[[nodiscard]] std::vector<std::string> names_in(const OpenFile& directory);

/// All of a file, unless it is bigger than `bytes_max` or cannot be read.
[[nodiscard]] Result<std::string> read_whole(const OpenFile& file, std::size_t bytes_max,
                                             const std::string& shown);

/// "<shown>: <what the number means>", `exhausted` if the disk is full.
[[nodiscard]] Error file_error(const std::string& shown, int number);

/// Waits until no other process holds the file's lock (flock(2)); it ends with the file.
[[nodiscard]] int lock_file(const OpenFile& file) noexcept;

/// A temporary file beside its final place, never taken for a complete one: removed with this
/// object unless it was published or kept. Use from one thread at a time.
class PendingFile {
 public:
  PendingFile() = default;
  /// REQUIRES: `directory` outlives this. An error shows as `!file()`, with errno.
  PendingFile(const OpenFile& directory, std::string name, mode_t mode = 0600) noexcept;
  ~PendingFile();
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) noexcept;
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  [[nodiscard]] const OpenFile& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Puts it, written to the disk, in the place of whatever is there. The directory is not synced.
  [[nodiscard]] int publish(const OpenFile& directory, const std::string& name) noexcept;
  void keep() noexcept { directory_ = nullptr; }

 private:
  const OpenFile* directory_ = nullptr;  ///< Where it is still to be removed from.
  std::string name_;
  OpenFile file_;
};

/// Times of files are taken from a Clock, so that ages can be tested.
[[nodiscard]] int set_time(const OpenFile& file, WallTime at) noexcept;
[[nodiscard]] WallTime time_of(const struct stat& facts) noexcept;

}  // namespace watchdog
