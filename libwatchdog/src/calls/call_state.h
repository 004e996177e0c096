/// \file
/// The shared state of the thread that runs a call, the one that waits for it, and a confirming
/// person. It lives as long as the last of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "calls/movement.h"
#include "calls/wakeup.h"
#include "watchdog/deadline.h"
#include "watchdog/executor.h"
#include "watchdog/tool.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {

/// Kept of what a tool gives piece by piece: the beginning and the end of it.
class PartialText {
 public:
  static constexpr std::size_t half_max = 512U << 10U;
  void add(std::string_view text);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::string head_;
  std::string tail_;
  std::uint64_t bytes_ = 0;
};

/// The phase of a call. It goes down this list and reaches `terminal` once.
enum class CallPhase : std::uint8_t { queued, running, stopping, terminal };

/// The result of a handler's thread.
struct HandlerResult {
  ToolReply reply;
  std::optional<Output> output;      ///< The reply's text as the model gets it.
  std::optional<ToolDenied> denied;  ///< It was not made after all.
  bool called_off = false;           ///< Before it came.
};

struct CallState {
  CallState(ToolCall asked, std::string in_turn, const Clock& with, CancelScope own,
            std::shared_ptr<Wakeup> waiting, WriteFence its)
      : call(std::move(asked)),
        turn(std::move(in_turn)),
        clock(with),
        scope(std::move(own)),
        waiter(std::move(waiting)),
        fence(std::move(its)),
        queued_at(clock_now(with)) {}

  static Instant clock_now(const Clock& clock) { return Instant{clock.since_boot()}; }

  const ToolCall call;
  /// The handler's view of the call; differs from `call` after a confirmation by its arguments.
  std::atomic<const ToolCall*> seen_by_tool{&call};
  ToolCall confirmed;
  std::shared_ptr<ExecutionBudget> budget;  ///< Of its turn; may be null.
  const std::string turn;
  /// Not to be asked once the call is terminal: it may be gone.
  const Clock& clock;
  CancelScope scope;
  const std::shared_ptr<Wakeup> waiter;
  WriteFence fence;

  mutable std::mutex mutex;  ///< Guards what follows. One lock and one `now` decide a race.
  CallPhase phase = CallPhase::queued;
  Instant queued_at;
  std::optional<Instant> began_at;
  std::optional<ResolvedDeadline> limits;  ///< Resolved before it begins.
  std::optional<Movement> movement;        ///< Since it began.
  std::optional<Instant> asked_at;         ///< When a person was asked to confirm it.
  PartialText partial;
  std::string message;
  std::optional<EffectState> effects;
  std::optional<HandlerResult> home;
  std::string checkpoint;     ///< Of what it may overwrite.
  int budget_pauses = 0;      ///< The budget's clock stands still for this call.
  bool may_have_run = false;  ///< Its handler was invoked.
  bool returned = false;      ///< Its thread is back, or was never needed.

  /// Claims the start. Returns false if it was cancelled before; its thread has nothing to do.
  bool begin();
  /// Claims the handler's turn. Returns false if the call is over or cancelled: it must not be
  /// invoked.
  bool enter();
  /// Takes the handler's result. Returns false if it is too late; `with` is untouched.
  bool come_home(HandlerResult& with);
  [[nodiscard]] bool is_over() const;
  /// Begins a question to a person: neither deadline nor budget count, until `answered`. Returns
  /// false if the call is already over.
  bool ask();
  /// True if the call may still be made.
  bool answered();

  /// REQUIRES, of these three: mutex held.
  void pause(PauseReason reason, Instant now);
  void resume(PauseReason reason, Instant now);
  void free_budget();
  [[nodiscard]] RunningCall seen(Instant now) const;
};

}  // namespace watchdog
