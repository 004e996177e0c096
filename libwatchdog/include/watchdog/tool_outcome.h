/// \file
/// The outcome of a tool call: one of six kinds, each with the state of its effects, and the fence
/// through which its effects are published.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "watchdog/artifact_store.h"
#include "watchdog/deadline.h"
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
  std::filesystem::path path{};         ///< The file.
  std::optional<std::string> sha256{};  ///< Empty: it must not exist.
};

/// One call's fence. A handle: copies share one fence. Thread-safe.
class WriteFence {
 public:
  /// Opens a fence for one call.
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

  /// Returns true until the outcome of the call is decided.
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
  /// Ends `hold`.
  void let() noexcept;
  /// Closes the fence; waits for an effect under way, at most `at_most` (real time). Returns true
  /// if none is under way.
  bool revoke(Millis at_most) noexcept;
  /// Effects at a fence so far. A plain value.
  struct Account {
    int committed = 0;       ///< Effects that were published.
    int fenced = 0;          ///< Effects that were refused because the fence was closed or held.
    int stale = 0;           ///< Preconditions that failed.
    int failed = 0;          ///< By the disk, or by an exception.
    bool under_way = false;  ///< Effects that are being published now.
  };
  /// Returns what passed so far.
  [[nodiscard]] Account account() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

using WriteGate = WriteFence;  ///< Its name before 0.2; goes with 0.3.

/// A call as the model requested it. A plain value.
struct ToolCall {
  std::string id{};         ///< The provider's id, unchanged.
  std::string tool{};       ///< Its name.
  std::string arguments{};  ///< A JSON object as text.
};

/// How much of a call's intended change was made.
enum class EffectState : std::uint8_t { none, partial, complete, unknown };

template <>
struct Names<EffectState> {
  static constexpr std::string_view all[] = {"none", "partial", "complete", "unknown"};
};

/// Whether the same call may be made again.
enum class RetryAdvice : std::uint8_t { safe, verify_first, do_not, not_applicable };

template <>
struct Names<RetryAdvice> {
  static constexpr std::string_view all[] = {"safe", "verify_first", "do_not", "not_applicable"};
};

/// Why a call was denied.
enum class DenyReason : std::uint8_t {
  deadline,              ///< No time of the turn or its budget is left.
  budget,                ///< Steps, tokens, cost or calls are used up.
  write_denied,          ///< A person refused it.
  confirmation_expired,  ///< No person answered in time.
  policy,                ///< The owner does not allow it.
  disabled,              ///< Off for the rest of the turn, after timeouts; or by a mode.
  unknown_tool,
  invalid_arguments,
  duplicate_call,     ///< Its id was in the same batch before.
  quarantined,        ///< Earlier calls of it, or on the same resource, hang.
  saturated,          ///< All workers run calls that do not return.
  turn_cancelled,     ///< The turn is over.
  final_turn,         ///< The answer is due now.
  stale_precondition  ///< The resource changed meanwhile.
};

template <>
struct Names<DenyReason> {
  static constexpr std::string_view all[] = {
      "deadline",  "budget",         "write_denied",      "confirmation_expired", "policy",
      "disabled",  "unknown_tool",   "invalid_arguments", "duplicate_call",       "quarantined",
      "saturated", "turn_cancelled", "final_turn",        "stale_precondition"};
};

/// Why a call failed.
enum class FailureKind : std::uint8_t {
  tool_error,  ///< The tool returned an error.
  exception,
  spawn_failed,
  exit_nonzero,
  killed_by_signal,
  internal  ///< An error of the library.
};

template <>
struct Names<FailureKind> {
  static constexpr std::string_view all[] = {"tool_error",   "exception",        "spawn_failed",
                                             "exit_nonzero", "killed_by_signal", "internal"};
};

/// The call returned its output. A plain value.
struct ToolExecutionResult {
  Output output{};  ///< Output of the tool, for the model.
};

/// A result that was too long to be shown: `preview.artifact` has all of it.
struct ToolArtifactReference {
  ArtifactRef artifact{};  ///< The stored output.
  Output preview{};        ///< Its beginning and its end, for the model.
};

/// The call failed. A plain value.
struct ToolFailure {
  FailureKind kind = FailureKind::tool_error;  ///< Why it failed.
  std::string message{};                       ///< The error, for the model.
  std::optional<int> exit_code{};              ///< 128 + n: signal n.
  Output partial{};                            ///< Its output before the error.
};

/// The call was given up. `effects` and `still_running` show its state.
struct ToolTimeout {
  TimeoutKind kind = TimeoutKind::idle;           ///< The limit that ended it.
  Millis limit{};                                 ///< Its value.
  Millis elapsed{};                               ///< Active time.
  Millis since_progress{};                        ///< Since its newest accepted progress.
  EffectState effects = EffectState::unknown;     ///< How much of its change was made.
  bool still_running = false;                     ///< Its work could not be stopped.
  RetryAdvice retry = RetryAdvice::verify_first;  ///< Whether the same call may be made again.
  Output partial{};                               ///< Its output so far.
};

/// The call was cancelled. A plain value.
struct ToolCancelled {
  CancelReason why{};                       ///< The party that cancelled, and its reason.
  bool started = false;                     ///< The tool was invoked.
  EffectState effects = EffectState::none;  ///< How much of its change was made.
  bool still_running = false;               ///< Its work could not be stopped.
  Millis elapsed{};                         ///< Its running time.
  Output partial{};                         ///< Its output so far.
};

/// The call was not made; nothing happened.
struct ToolDenied {
  DenyReason reason = DenyReason::policy;  ///< Why it was not run.
  std::string message{};                   ///< The same, for the model.
};

/// The outcome: exactly one of six kinds.
using ToolOutcome = std::variant<ToolExecutionResult, ToolArtifactReference, ToolFailure,
                                 ToolTimeout, ToolCancelled, ToolDenied>;

/// `result, artifact, failure, timeout, cancelled, denied`.
[[nodiscard]] std::string_view name_of(const ToolOutcome& outcome) noexcept;
/// True for all but results and artifacts.
[[nodiscard]] bool is_error(const ToolOutcome& outcome) noexcept;

/// A call and its outcome. A plain value.
struct CallReport {
  ToolCall call{};                     ///< The call as the model requested it.
  std::string turn{};                  ///< The turn of the call; empty: none.
  Epoch epoch = 0;                     ///< 0: it did not get one.
  bool began = false;                  ///< A thread got it, and its start was reported.
  ToolOutcome outcome{};               ///< How it ended.
  Millis queued{};                     ///< Until it began.
  Millis active{};                     ///< Its running time without pauses.
  Millis paused{};                     ///< The sum of its pauses.
  std::int64_t progress_accepted = 0;  ///< Accepted reports of progress.
  std::uint64_t output_bytes = 0;      ///< Of what it gave piece by piece.
  std::int64_t progress_rejected = 0;  ///< Rejected reports of progress.
  std::size_t wave = 0;                ///< The index of its wave.
  std::string deadline{};    ///< The source of its deadline; see ResolvedDeadline::provenance.
  std::string note{};        ///< For the model, besides the outcome: how its hint was changed.
  std::string checkpoint{};  ///< The checkpoint that restores its changes; empty: none.
};

/// Returns the text for the model, deterministic and without times of day: at most 1,200 characters
/// before the output.
[[nodiscard]] std::string render_for_model(const CallReport& report);
/// Returns one object: `tool, call_id, outcome, is_error, kind, output?`, and of errors `error,
/// error_type (timeout | execution_error | cancelled | denied), suggestion, effects?, retry?,
/// still_running?, limit_s?, elapsed_s?, artifact?`.
[[nodiscard]] std::string to_json(const CallReport& report);

}  // namespace watchdog
