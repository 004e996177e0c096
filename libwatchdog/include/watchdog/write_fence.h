/// \file
/// The only way for a tool's effects to be published: open during its call, and closed for good
/// when the call's outcome is decided.
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

/// A number that rises with each call, also across restarts. A store that remembers the highest one
/// can refuse late callers with a lower one ("fencing token"; M. Kleppmann, How to do distributed
/// locking, 2016).
using Epoch = std::uint64_t;

/// A source of epochs. Thread-safe.
class EpochSource {
 public:
  /// Counts from 1, in this process.
  EpochSource();
  /// Continues above every number that was given out with this file. Processes may share it.
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

/// The result of publishing an effect. `fenced`: the call is over, and nothing happened.
/// `precondition_failed`: the file changed since it was read.
enum class CommitResult : std::uint8_t { committed, fenced, precondition_failed, io_error };

template <>
struct Names<CommitResult> {
  static constexpr std::string_view all[] = {"committed", "fenced", "precondition_failed",
                                             "io_error"};
};

/// The content that a file must have to be replaced. A plain value.
struct FilePrecondition {
  std::filesystem::path path{};
  std::optional<std::string> sha256{};  ///< Empty: it must not exist.
};

/// One call's fence. A handle: copies share one fence. Thread-safe.
class WriteFence {
 public:
  WriteFence(Epoch epoch, std::string key);

  /// Moves `staged`, a file beside the target, to the target, durably and in one step. If that
  /// fails the staged file is removed. It never leaves its directory, even if another directory has
  /// taken that one's place.
  CommitResult publish_file(const std::filesystem::path& staged,
                            const std::filesystem::path& target);
  /// The same, only if the target meets `expected`.
  CommitResult publish_file(const std::filesystem::path& staged, const FilePrecondition& expected);
  /// Runs any other short effect: the call's outcome waits for it. An exception counts as a partial
  /// effect, and is rethrown.
  CommitResult commit(const std::function<void()>& effect);

  [[nodiscard]] bool is_open() const noexcept;
  /// Returns the call's number, for stores that check it.
  [[nodiscard]] Epoch fencing_token() const noexcept;
  /// Returns the same key for each try of the same call: `wd-TURN-CALL`.
  [[nodiscard]] const std::string& idempotency_key() const noexcept;

  // -- for the code that decides the outcome

  /// Each later `publish_file` to this path must also meet the precondition; a path without one is
  /// refused.
  void expect(FilePrecondition precondition);
  /// Until `let`, effects are fenced as if the fence were closed; those are then forgotten.
  void hold() noexcept;
  void let() noexcept;
  /// Closes the fence; waits for an effect under way, at most `at_most` (real time). Returns true
  /// if none is under way.
  bool revoke(Millis at_most) noexcept;
  struct Account {
    int committed = 0;
    int fenced = 0;
    int stale = 0;   ///< Preconditions that failed.
    int failed = 0;  ///< By the disk, or by an exception.
    bool under_way = false;
  };
  [[nodiscard]] Account account() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

using WriteGate = WriteFence;  ///< Its name before 0.2; goes with 0.3.

}  // namespace watchdog
