/// \file
/// The directories that an agent's tools may touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"

namespace watchdog {

/// Part of a file. A plain value.
struct FilePart {
  std::string bytes{};
  std::uint64_t offset = 0;
  std::uint64_t total = 0;  ///< Bytes of the file.
};

/// Names in a directory. A plain value.
struct FileNames {
  std::vector<std::string> names{};  ///< Sorted; directories end with a slash.
  std::size_t total = 0;             ///< The number of all names.
};

/// Directories that tools may use. Neither `..` nor symbolic links lead out of them, even if they
/// change while a path is followed. The workspace opens each part of a path by itself, and reads
/// links itself; it follows those that stay inside. Thread-safe.
class Workspace {
 public:
  static constexpr std::size_t file_bytes_max = 16U << 20U;

  /// REQUIRES: not empty. Relative paths are taken from the first root. Errors: `not_found`,
  /// `invalid` (not a directory).
  [[nodiscard]] static Result<Workspace> open(const std::vector<std::filesystem::path>& roots);
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  [[nodiscard]] const std::filesystem::path& root() const noexcept;  ///< The first.

  /// Returns the path, absolute and without `.`, `..` and links; its last part need not exist.
  /// Errors: `invalid` (leads out, holds a NUL, is too long).
  [[nodiscard]] Result<std::filesystem::path> resolve(std::string_view path) const;

  /// Errors: `invalid` (leads out, or not a regular file: devices and pipes may block for ever),
  /// `not_found`, `unavailable`.
  [[nodiscard]] Result<FilePart> read(std::string_view path, std::uint64_t offset = 0,
                                      std::size_t bytes_max = file_bytes_max) const;
  /// The first `count_max` names in a directory. Errors: `invalid` (leads out, or is not a
  /// directory), `not_found`, `unavailable`.
  [[nodiscard]] Result<FileNames> list(std::string_view path, std::size_t count_max) const;
  /// Returns the file's SHA-256; empty: there is no file. Errors as of `read`, and `exhausted`
  /// (above 1 GiB).
  [[nodiscard]] Result<std::optional<std::string>> digest(std::string_view path) const;

  /// Writes the content durably to a hidden file beside the target, with the target's mode (else
  /// 0644 less the umask), and returns its path; only the write fence renames it. Creates missing
  /// directories. Errors as of `read`, and `exhausted`.
  [[nodiscard]] Result<std::filesystem::path> stage(std::string_view path,
                                                    std::string_view content) const;

  /// Returns the change as a unified diff with three lines of context (POSIX diff -u), at most
  /// `chars_max` characters; of files that are not text, their sizes. Empty: no change. Control
  /// characters are shown as symbols.
  [[nodiscard]] Result<std::string> diff(std::string_view path, std::string_view content,
                                         std::size_t chars_max = 8'000) const;

 private:
  struct State;
  explicit Workspace(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
