/// \file
/// The calls of one answer of the model on their way to their outcomes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calls/executor_core.h"
#include "calls/turn_state.h"

namespace watchdog {

/// Lives on the stack of the executing thread and works on it alone: it starts the calls, watches
/// their deadlines, and decides each outcome once. Handlers run on workers.
class CallBatch {
 public:
  CallBatch(std::shared_ptr<ToolExecutor::Core> core, std::shared_ptr<Turn::State> turn,
            std::span<const ToolCall> calls);
  ~CallBatch();
  CallBatch(const CallBatch&) = delete;
  CallBatch& operator=(const CallBatch&) = delete;

  [[nodiscard]] std::vector<CallReport> run();

 private:
  enum class Stage : std::uint8_t {
    fresh,
    waiting,  ///< for what it uses
    ready,    ///< for a worker
    started,
    done
  };

  struct Entry {
    const ToolCall* asked = nullptr;
    std::string key;       ///< Its id in the turn.
    bool is_twin = false;  ///< Of an earlier one with the same key.
    std::size_t wave = 0;
    Stage stage = Stage::fresh;
    ToolCall call;  ///< Without what was meant for us.
    TimeoutHint hint;
    std::shared_ptr<Tool> tool;
    std::shared_ptr<CallState> state;
    ResourceLocks::TicketPtr ticket;
    Instant queued_at{};
    bool queued_reported = false;
    bool cancel_reported = false;
    bool slow_reported = false;
    Instant next_progress = never;
    std::int64_t accepted_reported = 0;
    std::optional<TimeoutKind> expired;  ///< It was asked to stop because of that.
    Instant grace_until = never;
    CallReport report;
  };

  void run_wave(const Wave& wave);
  /// Up to where it waits for something, or is done.
  void step(Entry& entry, Instant now);
  void admit(Entry& entry, Instant now);
  [[nodiscard]] std::optional<ToolDenied> refusal(const Entry& entry) const;
  void await_resources(Entry& entry, Instant now);
  void start(Entry& entry, Instant now);
  [[nodiscard]] std::optional<ResolvedDeadline> limits_of(const Entry& entry, Instant now,
                                                          ToolDenied& denied) const;
  void watch(Entry& entry, Instant now);
  void report_progress(Entry& entry, Instant now);
  [[nodiscard]] bool queued_too_long(Entry& entry, Instant now);

  /// The one transition to its outcome.
  void conclude(Entry& entry, Instant now);
  [[nodiscard]] ToolOutcome outcome_of(Entry& entry, std::optional<HandlerResult>& home,
                                       Instant now, EffectState effects, bool still_running);
  [[nodiscard]] EffectState effects_of(const Entry& entry, bool came_home, bool ok, bool settled,
                                       std::optional<EffectState> said) const;
  void finish(Entry& entry, ToolOutcome outcome);
  void note_in_turn(const Entry& entry);
  /// REQUIRES: the turn's mutex held.
  void forget(const Entry& entry);
  void fail_all() noexcept;

  /// Returns when something is due without a notification.
  [[nodiscard]] Instant next_look(Instant now) const;
  /// Waits until a notification, or until something is due. `since`: the last look.
  void wait(Instant since);
  void publish(const Entry& entry, ToolEvent::Kind kind, Millis elapsed = {}) const;

  const std::shared_ptr<ToolExecutor::Core> core_;
  const std::shared_ptr<Turn::State> turn_;
  const std::shared_ptr<Wakeup> wakeup_;
  const std::span<const ToolCall> calls_;
  std::vector<Entry> entries_;
  std::optional<CancelReason> called_off_;  ///< All that is left.
  std::vector<std::size_t> flying_;         ///< Of the wave: not fresh and not done.
  /// The rest of `commit_grace` in this round: one for all calls.
  Millis commit_left_{};
};

}  // namespace watchdog
