#include "tools/call_state.h"

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
  deadline.emplace(limits.value_or(ResolvedDeadline{}), *began_at);
  return true;
}

bool CallState::come_home(Homecoming with) {
  {
    const std::lock_guard guard(mutex);
    returned = true;
    if (phase == CallPhase::terminal) return false;
    home = std::move(with);
  }
  waiter->ring();
  return true;
}

void CallState::ask() {
  {
    const std::lock_guard guard(mutex);
    if (phase != CallPhase::running) return;
    const auto now = clock_now(clock);
    asked_at = now;
    deadline->pause(PauseReason::awaiting_confirmation, now);
    if (budget && !budget_held) {
      budget->pause();
      budget_held = true;
    }
  }
  waiter->ring();
}

bool CallState::answered() {
  const std::lock_guard guard(mutex);
  free_budget();
  if (phase == CallPhase::terminal) return false;
  if (asked_at) deadline->resume(PauseReason::awaiting_confirmation, clock_now(clock));
  asked_at.reset();
  return phase == CallPhase::running && !scope.cancelled();
}

void CallState::free_budget() {
  if (!budget_held) return;
  budget->resume();
  budget_held = false;
}

RunningCall CallState::seen(Instant now) const {
  const std::lock_guard guard(mutex);
  RunningCall info{.id = call.id, .tool = call.tool};
  if (deadline) {
    info.elapsed = deadline->active(now);
    info.since_progress = deadline->since_progress(now);
    info.paused = deadline->paused();
  }
  info.note = message;
  return info;
}

}  // namespace watchdog
