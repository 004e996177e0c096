/// \file
/// Files as they were before a tool changed them, to be brought back.
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

/// What a restore did with each path of its checkpoint. A plain value.
struct Restored {
  std::vector<std::filesystem::path> restored;
  std::vector<std::filesystem::path> removed;          ///< The tool had made them.
  std::vector<std::filesystem::path> skipped_changed;  ///< Somebody changed them since.
  std::string undo;  ///< The checkpoint that was taken before: restores what this overwrote.
};

/// A checkpoint as a list shows it. A plain value.
struct CheckpointInfo {
  std::string id;
  std::string call;  ///< The tool call it was taken for.
  WallTime at{};
  std::vector<std::filesystem::path> paths;
  bool sealed = false;  ///< What the tool left is known.
};

/// Before-images of single files in a directory of its own. It covers the paths that a tool named
/// beforehand and nothing else; a repository of the user is not touched. Thread-safe.
class CheckpointStore {
 public:
  /// Makes the directory (0700) if it is missing, and finishes a restore that a crash broke off.
  [[nodiscard]] static Result<CheckpointStore> open(const std::filesystem::path& directory,
                                                    const Clock& clock = system_clock());
  ~CheckpointStore();
  CheckpointStore(CheckpointStore&&) noexcept;
  CheckpointStore& operator=(CheckpointStore&&) noexcept;

  /// Keeps what the paths hold now, durably; a path where nothing is, is kept as that. Gives the
  /// checkpoint's id. Errors: `invalid` (a directory, a device), `exhausted`, `unavailable`.
  [[nodiscard]] Result<std::string> snapshot(std::span<const std::filesystem::path> paths,
                                             std::string_view call);
  /// Notes what the paths hold after the tool: a restore leaves alone what was changed since then.
  [[nodiscard]] Result<void> seal(std::string_view id);

  /// Brings back what the checkpoint holds. A path whose content is not what the tool left is
  /// skipped unless `force`. Atomic for each file; after a crash it is completed by `open`.
  /// Errors: `not_found`, `corrupt`, `unavailable`.
  [[nodiscard]] Result<Restored> restore(std::string_view id, bool force = false);

  /// The newest first.
  [[nodiscard]] Result<std::vector<CheckpointInfo>> list(std::size_t count_max = 100) const;
  /// Drops all but the newest so many, and contents that none of those needs.
  Result<std::size_t> trim(std::size_t keep = 100);

 private:
  struct State;
  explicit CheckpointStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
