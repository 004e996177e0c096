/// \file
/// What the thread that runs a call, the one that waits for it, and whoever asks share of it. It
/// lives as long as the last of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tools/wakeup.h"
#include "watchdog/cancel_scope.h"
#include "watchdog/deadline.h"
#include "watchdog/tool.h"
#include "watchdog/turns.h"
#include "watchdog/write_gate.h"

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

/// Where a call is on its way. It goes down this list and reaches `terminal` once.
enum class CallPhase : std::uint8_t { queued, running, stopping, terminal };

/// What a handler's thread brought home.
struct Homecoming {
  ToolReply reply;
  std::optional<Output> output;      ///< The reply's text as the model gets it.
  std::optional<ToolDenied> denied;  ///< It was not made after all.
  bool called_off = false;           ///< Before it came.
};

struct CallState {
  CallState(ToolCall asked, std::string in_turn, const Clock& with, CancelScope own,
            std::shared_ptr<Wakeup> waiting, WriteGate its)
      : call(std::move(asked)),
        turn(std::move(in_turn)),
        clock(with),
        scope(std::move(own)),
        waiter(std::move(waiting)),
        gate(std::move(its)),
        queued_at(clock_now(with)) {}

  static Instant clock_now(const Clock& clock) { return Instant{clock.since_boot()}; }

  const ToolCall call;
  /// What the handler sees; another than `call` once it was confirmed by its arguments.
  std::atomic<const ToolCall*> seen_by_tool{&call};
  ToolCall confirmed;
  std::shared_ptr<ExecutionBudget> budget;  ///< Of its turn; may be null.
  const std::string turn;
  /// Not to be asked once the call is terminal: it may be gone.
  const Clock& clock;
  CancelScope scope;
  const std::shared_ptr<Wakeup> waiter;
  WriteGate gate;

  mutable std::mutex mutex;  ///< Guards what follows. One lock and one `now` decide a race.
  CallPhase phase = CallPhase::queued;
  Instant queued_at;
  std::optional<Instant> began_at;
  std::optional<ResolvedDeadline> limits;    ///< Resolved before it begins.
  std::optional<ActivityDeadline> deadline;  ///< Since it began.
  std::optional<Instant> asked_at;           ///< When a person was asked to confirm it.
  PartialText partial;
  std::string message;
  std::optional<double> total;
  std::optional<EffectState> effects;
  std::optional<Homecoming> home;
  std::string checkpoint;     ///< Of what it may overwrite.
  int budget_pauses = 0;      ///< The budget's clock stands still for this call.
  bool may_have_run = false;  ///< Its handler was invoked.
  bool returned = false;      ///< Its thread is back, or was never needed.

  /// Claims the start. False: it was called off before; its thread has nothing to do.
  bool begin();
  /// Claims the handler's turn. False: the call is over or called off, it must not be invoked.
  bool enter();
  /// Takes what its handler came to. False: too late, nobody waits for it; `with` is untouched.
  bool come_home(Homecoming& with);
  [[nodiscard]] bool is_over() const;
  /// A person is to be asked: neither deadline nor budget count, until `answered`. False: nobody
  /// would wait for the answer.
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
