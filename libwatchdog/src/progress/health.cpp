#include "watchdog/health.h"

#include <algorithm>

namespace watchdog {
namespace {

std::string seconds(Millis time) {
  const auto ms = time.count();
  if (ms % 1000 == 0) return std::to_string(ms / 1000) + " s";
  return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
}

std::string counted(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// When a bound that would be reached at `at` really is. Whoever was away heard nothing: after an
/// absence the observer waits as long again, but never longer than the bound itself. What was
/// reached before the absence stays reached.
Instant unless_away(const History& history, Instant at, Millis bound) {
  if (at <= history.observer_back - history.observer_gap) return at;
  return std::max(at, history.observer_back + std::min(history.observer_gap, bound));
}

/// Until when open calls excuse the absence of state changes.
Instant excused_until(const History& history, const Policy& policy) {
  Instant until = Instant::min();
  for (const auto& call : *history.open_calls) {
    const auto allowed = call.deadline.count() > 0 ? call.deadline : policy.call_idle_max;
    const auto reached = std::max(call.since, history.last_rise) + allowed;
    until = std::max(until, unless_away(history, reached, allowed));
  }
  return until;
}

Health without_trouble(const History& history) {
  if (history.state_changes > 0)
    return {.kind = HealthKind::progressing, .evidence = {history.change_seq}};
  if (history.said_something) return {.kind = HealthKind::starting};
  return {.kind = HealthKind::unknown};
}

/// What the events say apart from silence.
Health awake(const History& history, const Policy& policy, Instant now) {
  if (history.lifecycle == Lifecycle::waiting) {
    return {
        .kind = HealthKind::blocked, .pattern = Pattern::F7, .evidence = {history.notes->wait_seq}};
  }
  Health health = without_trouble(history);
  if (!base_rule(history, policy) || history.lifecycle == Lifecycle::idle) return health;
  if (history.loop_beats_since_rise < policy.stuck_threshold) return health;  // it works
  if (!history.open_calls->empty()) {
    const auto until = excused_until(history, policy);
    if (now < until) {
      health.valid_until = until;
      return health;
    }
  }
  return {.kind = HealthKind::stuck,
          .pattern = Pattern::F1,
          .evidence = {history.streak_seq, history.change_seq}};
}

}  // namespace

bool base_rule(const History& history, const Policy& policy) noexcept {
  return history.loop_beats_since_change >= policy.stuck_threshold;
}

Millis silence_bound(const History& history, const Policy& policy) noexcept {
  // Whole intervals, so that rows of regular heartbeats can be merged without moving the bound.
  const auto interval = policy.heartbeat_interval;
  const auto longest = (history.gaps.longest() + interval / 2) / interval;
  return interval * (policy.silence_intervals + longest);
}

Instant silence_begins(const History& history, const Policy& policy) noexcept {
  if (history.sign_seq == 0) return never;
  const auto bound = silence_bound(history, policy);
  return unless_away(history, history.last_sign + bound, bound);
}

bool is_alive(const History& history, const Policy& policy, Instant now) noexcept {
  return !is_end(history.lifecycle) && history.heartbeats > 0 &&
         now - history.last_beat < 2 * policy.heartbeat_interval;
}

Health judge(const History& history, const Policy& policy, Instant now) {
  const bool gone = history.exited_seq != 0;
  // Only what beats by itself can fall silent; one gap must have been seen to know that it does.
  const bool can_fall_silent = history.periodic_beats >= 2;
  const auto silence = gone || can_fall_silent ? silence_begins(history, policy) : never;
  if (now >= silence) {
    if (gone) {
      return {.kind = HealthKind::dead,
              .pattern = Pattern::F4,
              .evidence = {history.exited_seq, history.sign_seq}};
    }
    return {.kind = HealthKind::silent, .pattern = Pattern::F4, .evidence = {history.sign_seq}};
  }
  Health health = awake(history, policy, now);
  health.valid_until = std::min(health.valid_until, silence);
  return health;
}

std::string reason_of(const Health& health, const History& history, const Policy& policy) {
  switch (health.kind) {
    case HealthKind::unknown:
      return "it has not reported anything yet";
    case HealthKind::starting:
      return "it is alive and has not reported a state change yet";
    case HealthKind::progressing:
      return history.open_calls->empty()
                 ? "its newest state change is " + history.last_change_type
                 : "its newest state change is " + history.last_change_type + "; it is calling " +
                       history.open_calls->back().name;
    case HealthKind::stuck:
      return "its loop went round " + counted(history.loop_beats_since_change, "time") +
             " without a state change (limit " + std::to_string(policy.stuck_threshold) + ")";
    case HealthKind::blocked:
      return "it waits for " + (history.notes->waiting_for.empty() ? "something it did not name"
                                                                   : history.notes->waiting_for);
    case HealthKind::silent:
      return "its heartbeats stopped: nothing for more than " +
             seconds(silence_bound(history, policy));
    case HealthKind::dead:
      return "its process" + (history.pid > 0 ? " " + std::to_string(history.pid) : "") +
             " is gone and nothing was heard of it since";
    case HealthKind::slow:
    case HealthKind::suspect:
    case HealthKind::looping:
      break;
  }
  return std::string(name_of(health.kind));
}

std::string evidence_note(const Health& health, std::size_t at) {
  switch (health.kind) {
    case HealthKind::stuck:
      return at == 0 ? "first pass of its loop without a state change" : "the newest state change";
    case HealthKind::blocked:
      return "the wait it declared";
    case HealthKind::dead:
      return at == 0 ? "its process was found gone" : "the last sign of life";
    case HealthKind::silent:
      return "the last sign of life";
    default:
      return "the newest state change";
  }
}

}  // namespace watchdog
