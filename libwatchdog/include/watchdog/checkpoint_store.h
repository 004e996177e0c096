/// \file
/// Stores files as they were before a tool changed them, and restores them.
#pragma once

#include <cstddef>
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

/// The results of a restore. A plain value.
struct Restored {
  std::vector<std::filesystem::path> restored{};
  std::vector<std::filesystem::path> removed{};          ///< Paths that the tool had created.
  std::vector<std::filesystem::path> skipped_changed{};  ///< Paths that changed after the tool.
  std::string undo{};  ///< A checkpoint from before the restore, which undoes it.
};

/// A checkpoint as `list` returns it. A plain value.
struct CheckpointInfo {
  std::string id{};
  std::string call{};  ///< The tool call it was taken for.
  WallTime at{};
  std::vector<std::filesystem::path> paths{};
  bool sealed = false;  ///< The state after the tool is known.
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
