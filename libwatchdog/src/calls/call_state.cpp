#include "calls/call_state.h"

#include <algorithm>
#include <utility>

namespace watchdog {

void PartialText::add(std::string_view text) {
  bytes_ += text.size();
  const auto room = half_max - head_.size();
  head_.append(text.substr(0, room));
  if (text.size() <= room) return;
  tail_.append(text.substr(room));
  // Cut rarely, so that many small pieces stay cheap.
  if (tail_.size() > 2 * half_max) tail_.erase(0, tail_.size() - half_max);
}

std::string PartialText::text() const {
  const auto kept = std::min(tail_.size(), half_max);
  const auto left_out = bytes_ - head_.size() - kept;
  if (left_out == 0) return head_ + tail_;
  return head_ + "\n[" + std::to_string(left_out) + " bytes left out]\n" +
         tail_.substr(tail_.size() - kept);
}

bool CallState::begin() {
  const std::lock_guard guard(mutex);
  if (phase != CallPhase::queued || scope.cancelled()) return false;
  phase = CallPhase::running;
  began_at = clock_now(clock);
  movement.emplace(limits.value_or(ResolvedDeadline{}), *began_at);
  return true;
}

bool CallState::enter() {
  const std::lock_guard guard(mutex);
  if (phase != CallPhase::running || scope.cancelled()) return false;
  may_have_run = true;
  return true;
}

bool CallState::come_home(HandlerResult& with) {
  {
    const std::lock_guard guard(mutex);
    returned = true;
    if (phase == CallPhase::terminal) return false;
    with.called_off = scope.cancelled();
    home = std::move(with);
  }
  waiter->ring();
  return true;
}

bool CallState::is_over() const {
  const std::lock_guard guard(mutex);
  return phase == CallPhase::terminal;
}

bool CallState::ask() {
  {
    const std::lock_guard guard(mutex);
    if (phase != CallPhase::running || scope.cancelled()) return false;
    asked_at = clock_now(clock);
    pause(PauseReason::awaiting_confirmation, *asked_at);
  }
  waiter->ring();
  return true;
}

bool CallState::answered() {
  const std::lock_guard guard(mutex);
  if (phase == CallPhase::terminal) return false;
  resume(PauseReason::awaiting_confirmation, clock_now(clock));
  asked_at.reset();
  return phase == CallPhase::running && !scope.cancelled();
}

void CallState::pause(PauseReason reason, Instant now) {
  movement->pause(reason, now);
  if (!budget) return;
  budget->pause();
  ++budget_pauses;
}

void CallState::resume(PauseReason reason, Instant now) {
  movement->resume(reason, now);
  if (budget_pauses == 0) return;
  budget->resume();
  --budget_pauses;
}

void CallState::free_budget() {
  for (; budget_pauses > 0; --budget_pauses) budget->resume();
}

RunningCall CallState::seen(Instant now) const {
  const std::lock_guard guard(mutex);
  RunningCall info{.id = call.id, .tool = call.tool};
  if (movement) {
    const auto& deadline = movement->deadline();
    info.elapsed = deadline.active(now);
    info.since_progress = deadline.since_progress(now);
    info.paused = deadline.paused();
  }
  info.note = message;
  return info;
}

}  // namespace watchdog
