/// \file
/// The turns of this process: what they do now, and how they are aborted.
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

/// A call under way. A plain value.
struct RunningCall {
  std::string id;
  std::string tool;
  Millis elapsed{};  ///< Active time.
  Millis since_progress{};
  bool paused = false;
  std::string note{};  ///< What the tool said last.
};

/// A turn at one moment. A plain value.
struct TurnInfo {
  std::string id;
  std::string parent;  ///< Empty: none.
  std::string agent;
  std::string session;
  int depth = 0;  ///< How many are above it.
  WallTime started{};
  Millis elapsed{};
  std::vector<RunningCall> running;
  std::int64_t calls_total = 0;
  std::int64_t calls_done = 0;
  std::int64_t calls_timed_out = 0;
  bool aborting = false;
};

enum class AbortResult : std::uint8_t { aborted, already_aborting, not_found };

/// What becomes of a turn whose owner's connection is gone. Who only watches does not matter.
enum class DisconnectPolicy : std::uint8_t { detach, abort_after_grace, abort_now };

/// A turn that begins, is aborted or ends. A plain value.
struct TurnEvent {
  enum class Kind : std::uint8_t { start, abort, end } kind = Kind::start;
  std::string turn;
  std::string parent;
  int depth = 0;
  std::string reason{};  ///< Of an abort: user, timeout or error; of an end: completed or aborted.
  std::int64_t calls = 0;  ///< Of an end.
};

struct TurnOptions {
  std::string agent{};
  std::string session{};
  std::shared_ptr<ExecutionBudget> budget{};  ///< Empty: nothing limits it.
  std::optional<Millis> deadline{};           ///< No call of it runs longer. Ends no turn.
  DisconnectPolicy on_disconnect = DisconnectPolicy::abort_after_grace;
  bool final = false;  ///< Only tools that are allowed then; the answer is due.
};

inline constexpr int turn_depth_max = 5;

/// One answer of the model being carried out. Ends with this object. Thread-safe, but for moving.
class Turn {
 public:
  Turn(Turn&&) noexcept;
  Turn& operator=(Turn&&) noexcept;
  ~Turn();

  [[nodiscard]] const std::string& id() const noexcept;  ///< A ULID.
  [[nodiscard]] CancelScope& scope() noexcept;
  [[nodiscard]] ExecutionBudget* budget() noexcept;
  [[nodiscard]] const TurnOptions& options() const noexcept;
  /// False as soon as it is aborted.
  [[nodiscard]] bool accepting_writes() const noexcept;
  [[nodiscard]] TurnInfo info() const;

  struct State;

 private:
  friend class TurnRegistry;
  friend class ToolExecutor;
  explicit Turn(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Thread-safe. Turns may outlive it; they are then known to nobody else.
class TurnRegistry {
 public:
  struct Options {
    Millis disconnect_grace{10'000};
    const Clock* clock = &system_clock();
    /// Gets each event, one at a time, on the thread that causes it. Not called any more when the
    /// registry is gone.
    std::function<void(const TurnEvent&)> observer{};
  };
  TurnRegistry();
  explicit TurnRegistry(Options options);
  ~TurnRegistry();
  TurnRegistry(const TurnRegistry&) = delete;
  TurnRegistry& operator=(const TurnRegistry&) = delete;

  /// Below `parent`, its scope ends with that one's. Errors: `exhausted` (deeper than
  /// `turn_depth_max`), `cancelled` (the parent is aborted).
  [[nodiscard]] Result<Turn> begin(TurnOptions options, const Turn* parent = nullptr);
  /// In a scope: a run's, or that of a call which starts turns of its own (`parent`: its turn's
  /// id).
  [[nodiscard]] Result<Turn> begin_in(const CancelScope& scope, TurnOptions options,
                                      std::string_view parent = {});

  /// In the order in which they began.
  [[nodiscard]] std::vector<TurnInfo> active() const;
  [[nodiscard]] std::optional<TurnInfo> find(std::string_view turn) const;
  /// Calls off the turn, its calls and what they started. The calls' outcomes follow within the
  /// executor's grace.
  AbortResult abort(std::string_view turn, CancelReason reason);
  /// Calls off one call; the turn goes on.
  AbortResult abort_call(std::string_view turn, std::string_view call, CancelReason reason);
  std::size_t abort_all(CancelReason reason);

  /// The connection of whoever owns the turn, counted. Without a single `client_connected` a turn
  /// has no owner, and nothing happens.
  void client_connected(std::string_view turn);
  void client_disconnected(std::string_view turn);
  /// For clocks that do not run by themselves: somebody moved it.
  void tick();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
