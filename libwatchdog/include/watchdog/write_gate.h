/// \file
/// The only way in which a tool's effects become real: open while its call is, and shut for good
/// in the moment in which the call's outcome is decided.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A number that rises with each call, also across restarts: a store that remembers the highest one
/// it has seen can refuse whoever comes late with a lower one ("fencing token"; M. Kleppmann, How
/// to do distributed locking, 2016).
using Epoch = std::uint64_t;

/// Where they come from. Thread-safe.
class EpochSource {
 public:
  /// Counts from 1, in this process.
  EpochSource();
  /// Goes on above everything that was ever given out with this file. Processes may share it.
  /// Errors: `invalid` (not such a file), `unavailable`.
  [[nodiscard]] static Result<EpochSource> open(const std::filesystem::path& file);
  ~EpochSource();
  EpochSource(EpochSource&&) noexcept;
  EpochSource& operator=(EpochSource&&) noexcept;

  /// Errors: `unavailable` (a new range of numbers could not be stored).
  [[nodiscard]] Result<Epoch> next();

 private:
  struct State;
  explicit EpochSource(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// What became of an effect. `fenced`: the call is over, and nothing happened.
/// `precondition_failed`: the file is not what it was when it was looked at.
enum class CommitResult : std::uint8_t { committed, fenced, precondition_failed, io_error };

template <>
struct Names<CommitResult> {
  static constexpr std::string_view all[] = {"committed", "fenced", "precondition_failed",
                                             "io_error"};
};

/// What a file has to hold so that it may be replaced. A plain value.
struct FilePrecondition {
  std::filesystem::path path;
  std::optional<std::string> sha256{};  ///< Empty: it must not exist.
};

/// One call's gate. A handle: copies are the same gate. Thread-safe.
class WriteGate {
 public:
  WriteGate(Epoch epoch, std::string key);

  /// Puts `staged`, a file beside the target, in the target's place, durably and in one step. If
  /// that is not done the staged file is removed. It leaves its directory in no case, also if
  /// another one has taken that one's place.
  CommitResult publish_file(const std::filesystem::path& staged,
                            const std::filesystem::path& target);
  /// The same only if the target is what `expected` says.
  CommitResult publish_file(const std::filesystem::path& staged, const FilePrecondition& expected);
  /// Any other short effect: the call's outcome waits for it. What it throws counts as done in
  /// part, and is thrown on.
  CommitResult commit(const std::function<void()>& effect);

  [[nodiscard]] bool is_open() const noexcept;
  /// For stores that check it.
  [[nodiscard]] Epoch fencing_token() const noexcept;
  /// The same for each try of the same call: `wd-TURN-CALL`.
  [[nodiscard]] const std::string& idempotency_key() const noexcept;

  // -- for whoever decides the outcome

  /// Each later `publish_file` to this path has to meet it too; to paths of which nothing was
  /// expected there is none any more.
  void expect(FilePrecondition precondition);
  /// Until `let`, effects are fenced as if it were shut; what was fenced meanwhile is forgotten.
  void hold() noexcept;
  void let() noexcept;
  /// Shuts it; waits for an effect under way, but not longer than `at_most` (real time). True if
  /// none is under way any more.
  bool revoke(Millis at_most) noexcept;
  struct Account {
    int committed = 0;
    int fenced = 0;
    int stale = 0;   ///< Preconditions that failed.
    int failed = 0;  ///< By the disk, or thrown.
    bool under_way = false;
  };
  [[nodiscard]] Account account() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
