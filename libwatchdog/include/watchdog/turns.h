/// \file
/// The turns of this process: their state, and how to abort them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/cancel_scope.h"
#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A running call. A plain value.
struct RunningCall {
  std::string id{};
  std::string tool{};
  Millis elapsed{};  ///< Active time.
  Millis since_progress{};
  bool paused = false;
  std::string note{};  ///< The tool's newest message.
};

/// The state of a turn. A plain value.
struct TurnInfo {
  std::string id{};
  std::string parent{};  ///< Empty: none.
  std::string agent{};
  std::string session{};
  int depth = 0;  ///< The number of turns above it.
  WallTime started{};
  Millis elapsed{};
  std::vector<RunningCall> running{};
  std::int64_t calls_total = 0;
  std::int64_t calls_done = 0;
  std::int64_t calls_timed_out = 0;
  bool aborting = false;
};

enum class AbortResult : std::uint8_t { aborted, already_aborting, not_found };

/// The handling of a turn after its owner's connection closes. Watching clients do not count.
enum class DisconnectPolicy : std::uint8_t { detach, abort_after_grace, abort_now };

/// A turn that begins, is aborted or ends. A plain value.
struct TurnEvent {
  enum class Kind : std::uint8_t { start, abort, end } kind = Kind::start;
  std::string turn{};
  std::string parent{};
  int depth = 0;
  std::string reason{};  ///< Of an abort: user, timeout or error; of an end: completed or aborted.
  std::int64_t calls = 0;  ///< Of an end.
};

struct TurnOptions {
  std::string agent{};
  std::string session{};
  std::shared_ptr<ExecutionBudget> budget{};  ///< Empty: no limit.
  std::optional<Millis> deadline{};           ///< The latest end of its calls. It ends no turn.
  DisconnectPolicy on_disconnect = DisconnectPolicy::abort_after_grace;
  bool final = false;  ///< Only tools that are allowed in a final turn; the answer is due.
};

inline constexpr int turn_depth_max = 5;

/// One answer of the model in execution. Ends with this object. Thread-safe, except moving.
class Turn {
 public:
  Turn(Turn&&) noexcept;
  Turn& operator=(Turn&&) noexcept;
  ~Turn();

  [[nodiscard]] const std::string& id() const noexcept;  ///< A ULID.
  [[nodiscard]] CancelScope& scope() noexcept;
  [[nodiscard]] ExecutionBudget* budget() noexcept;
  [[nodiscard]] const TurnOptions& options() const noexcept;
  /// Returns false after an abort.
  [[nodiscard]] bool accepting_writes() const noexcept;
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
  struct Options {
    Millis disconnect_grace{10'000};
    const Clock* clock = &system_clock();
    /// Receives each event, one at a time, on the thread that causes it. Not called after the
    /// registry's destruction.
    std::function<void(const TurnEvent&)> observer{};
  };
  TurnRegistry();
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
  [[nodiscard]] std::optional<TurnInfo> find(std::string_view turn) const;
  /// Cancels the turn, its calls and what they started. The calls' outcomes follow within the
  /// executor's grace.
  AbortResult abort(std::string_view turn, CancelReason reason);
  /// Cancels one call; the turn goes on.
  AbortResult abort_call(std::string_view turn, std::string_view call, CancelReason reason);
  std::size_t abort_all(CancelReason reason);

  /// Counts the connections of the turn's owner. Without any `client_connected` a turn has no
  /// owner, and nothing happens.
  void client_connected(std::string_view turn);
  void client_disconnected(std::string_view turn);
  /// Notifies the registry that a manual clock was moved.
  void tick();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
