/// \file
/// The files of an agent: edits that can be undone, and checkpoints to return to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Part of a file. A plain value.
struct FilePart {
  std::string bytes{};       ///< The requested part.
  std::uint64_t offset = 0;  ///< Where it begins.
  std::uint64_t total = 0;   ///< Bytes of the file.
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
  static constexpr std::size_t file_bytes_max = 16U << 20U;  ///< The size of a file, at most.

  /// REQUIRES: not empty. Relative paths are taken from the first root. Errors: `not_found`,
  /// `invalid` (not a directory).
  [[nodiscard]] static Result<Workspace> open(const std::vector<std::filesystem::path>& roots);
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  [[nodiscard]] const std::filesystem::path& root() const noexcept;  ///< The first.

  /// Returns the path, absolute and without links and parts like `..`; its last part need not
  /// exist. Errors: `invalid` (leads out, holds a NUL, is too long).
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

/// The results of a restore. A plain value.
struct Restored {
  std::vector<std::filesystem::path> restored{};         ///< The files that are as they were.
  std::vector<std::filesystem::path> removed{};          ///< Paths that the tool had created.
  std::vector<std::filesystem::path> skipped_changed{};  ///< Paths that changed after the tool.
  std::string undo{};  ///< A checkpoint from before the restore, which undoes it.
};

/// A checkpoint as `list` returns it. A plain value.
struct CheckpointInfo {
  std::string id{};                            ///< The id for `restore`.
  std::string call{};                          ///< The tool call it was taken for.
  WallTime at{};                               ///< When it was made.
  std::vector<std::filesystem::path> paths{};  ///< The saved files.
  bool sealed = false;                         ///< The state after the tool is known.
};

/// Before-images of single files in its own directory. It covers only the paths that a tool named
/// beforehand; it does not touch the user's repository. Thread-safe.
class CheckpointStore {
 public:
  /// Creates the directory (0700) if it is missing, and completes a restore that a crash
  /// interrupted.
  [[nodiscard]] static Result<CheckpointStore> open(const std::filesystem::path& directory,
                                                    const Clock& clock = system_clock());
  ~CheckpointStore();
  CheckpointStore(CheckpointStore&&) noexcept;
  CheckpointStore& operator=(CheckpointStore&&) noexcept;

  /// Stores the present content of the paths durably; a missing path is stored as missing. Returns
  /// the checkpoint's id. Errors: `invalid` (a directory, a device), `exhausted`, `unavailable`.
  [[nodiscard]] Result<std::string> snapshot(std::span<const std::filesystem::path> paths,
                                             std::string_view call);
  /// Records the content of the paths after the tool: a restore skips paths that changed later.
  [[nodiscard]] Result<void> seal(std::string_view id);

  /// Restores the checkpoint's content. A path whose content is not the tool's is skipped unless
  /// `force`. Atomic for each file; `open` completes it after a crash. Errors: `not_found`,
  /// `corrupt`, `unavailable`.
  [[nodiscard]] Result<Restored> restore(std::string_view id, bool force = false);

  /// The newest first.
  [[nodiscard]] Result<std::vector<CheckpointInfo>> list(std::size_t count_max = 100) const;
  /// Drops all but the newest `keep`, and contents that none of those needs.
  Result<std::size_t> trim(std::size_t keep = 100);

 private:
  struct State;
  explicit CheckpointStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
