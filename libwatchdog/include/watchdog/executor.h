/// \file
/// Runs tool calls so that none can block a turn: not one that hangs for ever, throws, forks,
/// floods, or returns too late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/artifact_store.h"
#include "watchdog/budget.h"
#include "watchdog/deadline.h"
#include "watchdog/result.h"
#include "watchdog/time.h"
#include "watchdog/tool.h"
#include "watchdog/tool_outcome.h"
#include "watchdog/workspace.h"

namespace watchdog {

/// A running call. A plain value.
struct RunningCall {
  std::string id{};         ///< The provider's id.
  std::string tool{};       ///< Its tool.
  Millis elapsed{};         ///< Active time.
  Millis since_progress{};  ///< Since its newest accepted progress.
  bool paused = false;      ///< True during a pause.
  std::string note{};       ///< The tool's newest message.
};

/// The state of a turn. A plain value.
struct TurnInfo {
  std::string id{};                    ///< The turn's id.
  std::string parent{};                ///< Empty: none.
  std::string agent{};                 ///< Name of the agent.
  std::string session{};               ///< The session's id; empty: none.
  int depth = 0;                       ///< The number of turns above it.
  WallTime started{};                  ///< When it began.
  Millis elapsed{};                    ///< How long it has run.
  std::vector<RunningCall> running{};  ///< Its running calls.
  std::int64_t calls_total = 0;        ///< Calls that began in it.
  std::int64_t calls_done = 0;         ///< Those that ended.
  std::int64_t calls_timed_out = 0;    ///< Those that a limit ended.
  bool aborting = false;               ///< It is being stopped.
};

/// The result of an abort.
enum class AbortResult : std::uint8_t { aborted, already_aborting, not_found };

/// The handling of a turn after its owner's connection closes. Watching clients do not count.
enum class DisconnectPolicy : std::uint8_t { detach, abort_after_grace, abort_now };

/// A turn that begins, is aborted or ends. A plain value.
struct TurnEvent {
  /// The kind of event.
  enum class Kind : std::uint8_t { start, abort, end } kind = Kind::start;  ///< The kind of event.
  std::string turn{};                                                       ///< The turn's id.
  std::string parent{};  ///< The turn above it; empty: none.
  int depth = 0;         ///< The number of turns above it.
  std::string reason{};  ///< Of an abort: user, timeout or error; of an end: completed or aborted.
  std::int64_t calls = 0;  ///< Of an end.
};

/// The properties of a new turn. A plain value.
struct TurnOptions {
  std::string agent{};                        ///< Name of the agent.
  std::string session{};                      ///< The session's id; empty: none.
  std::shared_ptr<ExecutionBudget> budget{};  ///< Empty: no limit.
  std::optional<Millis> deadline{};           ///< The latest end of its calls. It ends no turn.
  DisconnectPolicy on_disconnect = DisconnectPolicy::abort_after_grace;  ///< See DisconnectPolicy.
  bool final = false;  ///< Only tools that are allowed in a final turn; the answer is due.
  /// Calls that may run, because they are charged to `budget` already; the rest is denied. Empty:
  /// as many as the budget has when they start.
  std::optional<std::int64_t> calls_max{};
};

inline constexpr int turn_depth_max = 5;  ///< Turns below each other, at most.

/// One answer of the model in execution. Ends with this object. Thread-safe, except moving.
class Turn {
 public:
  Turn(Turn&&) noexcept;
  Turn& operator=(Turn&&) noexcept;
  ~Turn();

  [[nodiscard]] const std::string& id() const noexcept;  ///< A ULID.
  /// Returns the scope that cancels the turn.
  [[nodiscard]] CancelScope& scope() noexcept;
  /// Returns the turn's budget; null: none.
  [[nodiscard]] ExecutionBudget* budget() noexcept;
  /// Returns the options it was begun with.
  [[nodiscard]] const TurnOptions& options() const noexcept;
  /// Returns false after an abort.
  [[nodiscard]] bool accepting_writes() const noexcept;
  /// Returns what is known of it now.
  [[nodiscard]] TurnInfo info() const;

  struct State;

 private:
  friend class TurnRegistry;
  friend class ToolExecutor;
  explicit Turn(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Thread-safe. Turns may outlive it; no other code then knows them.
class TurnRegistry {
 public:
  /// Options of a registry. A plain value.
  struct Options {
    /// How long a turn goes on without its client.
    Millis disconnect_grace{10'000};
    /// The clock of the turns.
    const Clock* clock = &system_clock();
    /// Receives each event, one at a time, on the thread that causes it. Not called after the
    /// registry's destruction.
    std::function<void(const TurnEvent&)> observer{};
  };
  TurnRegistry();
  /// Makes a registry without turns.
  explicit TurnRegistry(Options options);
  ~TurnRegistry();
  TurnRegistry(const TurnRegistry&) = delete;
  TurnRegistry& operator=(const TurnRegistry&) = delete;

  /// Begins a turn below `parent`, whose end also ends its scope. Errors: `exhausted` (deeper than
  /// `turn_depth_max`), `cancelled` (the parent is aborted).
  [[nodiscard]] Result<Turn> begin(TurnOptions options, const Turn* parent = nullptr);
  /// Begins a turn in a scope: a run's, or that of a call which starts turns of its own (`parent`:
  /// its turn's id).
  [[nodiscard]] Result<Turn> begin_in(const CancelScope& scope, TurnOptions options,
                                      std::string_view parent = {});

  /// Returns the turns in the order in which they began.
  [[nodiscard]] std::vector<TurnInfo> active() const;
  /// Returns the open turn of that id; nothing if there is none.
  [[nodiscard]] std::optional<TurnInfo> find(std::string_view turn) const;
  /// Cancels the turn, its calls and what they started. The calls' outcomes follow within the
  /// executor's grace.
  AbortResult abort(std::string_view turn, CancelReason reason);
  /// Cancels one call; the turn goes on.
  AbortResult abort_call(std::string_view turn, std::string_view call, CancelReason reason);
  /// Stops all open turns; returns their number.
  std::size_t abort_all(CancelReason reason);

  /// Counts the connections of the turn's owner. Without any `client_connected` a turn has no
  /// owner, and nothing happens.
  void client_connected(std::string_view turn);
  /// See client_connected.
  void client_disconnected(std::string_view turn);
  /// Notifies the registry that a manual clock was moved.
  void tick();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Calls that may run at the same time, as indices into their batch, ascending. A plain value.
struct Wave {
  bool exclusive = false;            ///< It consists of one call that runs alone.
  std::vector<std::size_t> calls{};  ///< Indices into the batch.
};

/// Keeps the order of the calls: an exclusive call is a wave of its own, and so are the calls
/// between two of them. A call with `wait_for_previous: true` among its arguments, which its tool
/// does not declare, begins a wave. Unknown tools count as parallel. Pure.
[[nodiscard]] std::vector<Wave> plan_waves(std::span<const ToolCall> calls,
                                           const ToolRegistry& tools);

/// Returns the spec's own concurrency, else the one of its effect.
[[nodiscard]] Concurrency concurrency_of(const ToolSpec& spec) noexcept;

/// Returns whether the same call may be repeated: as its author declares, else by the tool and the
/// state of its effects.
[[nodiscard]] RetryAdvice retry_advice(const ToolSpec& spec, EffectState effects) noexcept;

/// Something that happened to a call. A plain value; `output` is valid during the call.
struct ToolEvent {
  /// The kind of event.
  enum class Kind : std::uint8_t {
    queued,
    start,
    progress,  ///< At most every 5 s, once a call has run for 5 s.
    slow,      ///< The soft deadline is over.
    cancel_requested,
    result,     ///< `report` has it, of any kind.
    late,       ///< It returned after its outcome was decided; its result is dropped.
    abandoned,  ///< Its outcome is decided and its thread has not returned.
    reclaimed,  ///< That thread has returned.
    host_stall  ///< The machine stood still; deadlines were moved.
  };
  Kind kind = Kind::start;             ///< The kind of event.
  std::string turn{};                  ///< The turn of the call; empty: none.
  std::string call{};                  ///< The provider's id of the call.
  std::string tool{};                  ///< Its tool.
  std::string arguments{};             ///< Of `start`.
  Millis elapsed{};                    ///< Its running time.
  std::optional<Millis> deadline{};    ///< Of `start`: without progress.
  std::optional<double> value{};       ///< Of `progress`.
  std::optional<double> total{};       ///< Of progress: the whole, if it is known.
  std::uint64_t bytes = 0;             ///< Of `progress`, and of what came late.
  std::int64_t accepted = 0;           ///< Of `progress`.
  std::string detail{};                ///< The tool's message; of `late` the digest (SHA-256).
  const CallReport* report = nullptr;  ///< Of a result; null otherwise. Valid during the call.
};

template <>
struct Names<ToolEvent::Kind> {
  static constexpr std::string_view all[] = {
      "queued", "start", "progress",  "slow",      "cancel_requested",
      "result", "late",  "abandoned", "reclaimed", "host_stall"};
};

/// Threads that have not returned, at one moment. A plain value.
struct LeakStats {
  std::size_t workers = 0;                 ///< Threads, idle ones among them.
  std::size_t busy = 0;                    ///< With a call that is waited for, and
  std::size_t abandoned = 0;               ///< with a call that was given up.
  std::size_t slots_free = 0;              ///< Calls that could begin now.
  std::uint64_t abandoned_total = 0;       ///< Threads that were given up so far.
  std::uint64_t reclaimed_total = 0;       ///< Those of them that returned later.
  Millis oldest_abandoned{};               ///< How long the oldest one hangs.
  std::vector<std::string> quarantined{};  ///< Tools.
};

/// A plain value.
struct ExecutorOptions {
  DeadlineSettings deadlines{};      ///< Defaults and limits for deadlines.
  std::size_t parallel_max = 8;      ///< Calls of a batch that run at once.
  std::size_t workers_max = 16;      ///< Threads in all; one is free again only when it returns.
  std::size_t quarantine_after = 2;  ///< Abandoned calls of one tool; then it is denied.
  /// Timeouts of one tool in a row, after which it is off for the turn.
  int timeouts_in_a_row_max = 3;
  std::optional<Millis> cap{};                 ///< Of every call, before its tool's own.
  Millis queue_max{600'000};                   ///< How long a call may wait in the queue.
  std::optional<Millis> confirm_max{600'000};  ///< For a person's answer; empty: no limit.
  Millis cancel_grace{2'000};                  ///< For a call to return after a cancel request, and
  Millis commit_grace{250};                    ///< for an effect under way to end after that.
  Millis shutdown_grace{5'000};                ///< How long the destructor waits for calls.
  Millis progress_every{5'000};  ///< The least time between two reports of a call's progress.
  /// The longest time between two looks at the clock; a later look shows that the machine stood
  /// still.
  Millis look_longest{1'000};
  /// Limits of outputs for the model.
  OutputLimits output{};
  /// Runs tools that have effects, cannot be stopped and do not use the write fence.
  bool allow_unfenced = false;
  /// Cancels the other calls of a batch when one fails.
  bool cancel_siblings_on_failure = false;
  /// If a checkpoint store is given.
  bool fail_without_checkpoint = true;
  /// Executors of one process with the same workspace share one order of calls.
  std::string workspace{};
  std::size_t worker_stack_bytes = 1U << 20U;  ///< Of each worker's thread.
  const Clock* clock = &system_clock();        ///< The clock of deadlines.
};

/// Thread-safe: turns may use it at the same time.
class ToolExecutor {
 public:
  /// Parts of an executor.
  struct Parts {
    std::shared_ptr<const ToolRegistry> tools{};     ///< The tools that may be called.
    std::shared_ptr<ArtifactStore> artifacts{};      ///< Empty: long outputs are cut for good.
    std::shared_ptr<CheckpointStore> checkpoints{};  ///< Empty: none are taken.
    Confirmer confirm{};                    ///< Empty: calls that need a confirmation are denied.
    std::shared_ptr<EpochSource> epochs{};  ///< Empty: one of this process.
    /// Returns why a call is not allowed now (a mode, a list); empty string: it is. May be empty.
    std::function<std::string(const ToolCall&)> policy{};
    /// Receives each event, one at a time, from several threads, results in the order in which they
    /// come. It must not throw or block. It is not called after the executor's destruction.
    std::function<void(const ToolEvent&)> observer{};
    /// Receives failed calls, for the agent's own code, after the observer.
    std::function<void(const CallReport&)> on_tool_error{};
  };
  /// Starts no thread before the first call.
  explicit ToolExecutor(Parts parts, ExecutorOptions options = {});
  /// Waits `shutdown_grace` at most. Threads that have not returned stay behind and do not touch
  /// this object. REQUIRES: no call is being executed.
  ~ToolExecutor();
  ToolExecutor(const ToolExecutor&) = delete;
  ToolExecutor& operator=(const ToolExecutor&) = delete;

  /// Runs one call; see `execute_batch`.
  [[nodiscard]] CallReport execute(Turn& turn, const ToolCall& call) noexcept;
  /// Returns one report for each call, in their order, when each has an outcome: at the latest
  /// `cancel_grace` + `commit_grace` after the last deadline or a cancel.
  [[nodiscard]] std::vector<CallReport> execute_batch(Turn& turn,
                                                      std::span<const ToolCall> calls) noexcept;

  /// Returns the counts of threads that hang.
  [[nodiscard]] LeakStats leaks() const;
  /// Ends a tool's quarantine although calls of it hang.
  void reset_quarantine(std::string_view tool);
  /// Notifies the executor that a manual clock was moved.
  void tick();

 private:
  friend class CallBatch;
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace watchdog
