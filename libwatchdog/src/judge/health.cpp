// Judges a session. `judge` asks for silence and death first, then `awake` asks in this order: a
// declared wait, rest, confirmed repetition, a hung server, the base rule, suspicion, pace. The
// first match is the answer. Each answer names its evidence, and the instant until which it
// holds. The sentences for people are at the end of the file.
#include "watchdog/health.h"

#include <algorithm>

#include "judge/worked.h"

namespace watchdog {
namespace {

/// Returns when a bound is reached that would be reached at `at` without absences. An absent
/// observer received nothing, so after an absence it waits as long again, at most the bound itself.
/// A bound that was reached before the absence stays reached. The next absence may begin before
/// that wait is over, so all of them count, in order.
Instant unless_away(const History& history, Instant at, Millis bound) {
  for (const auto& absence : *history.absences) {
    if (at <= absence.back - absence.gap) continue;
    at = std::max(at, absence.back + std::min(absence.gap, bound));
  }
  return at;
}

/// Until when open calls excuse the absence of state changes.
Instant excused_until(const History& history, const Policy& policy) {
  Instant until = Instant::min();
  for (const auto& call : *history.open_calls) {
    const auto deadline = call.notes->deadline;
    const auto allowed = deadline.count() > 0 ? deadline : policy.call_idle_max;
    const auto reached = std::max(call.worked_from(), history.last_rise) + allowed;
    until = std::max(until, unless_away(history, reached, allowed));
  }
  return until;
}

/// For a call that ends at its deadline, and for the way of its result.
Millis deadline_grace(Millis deadline) noexcept {
  return std::max(Millis{10'000}, deadline / 10);
}

Health without_trouble(const History& history) {
  if (history.state_changes > 0)
    return {.kind = HealthKind::progressing, .evidence = {history.change_seq}};
  if (history.said_something) return {.kind = HealthKind::starting};
  return {.kind = HealthKind::unknown};
}

/// A model's opinion counts if it was sure, said it twice, or something else says so too.
bool counts(std::int32_t times, bool corroborated) {
  return times >= 2 || (times == 1 && corroborated);
}

/// Something may be wrong, or is: repetition, and what was thought of it.
Health doubted(const History& history, const Policy& policy, const Finding& found) {
  const bool repeats = found.level != Level::none;
  Health health{.kind = HealthKind::suspect,
                .pattern = repeats ? found.pattern : Pattern::below_pace,
                .evidence = repeats ? std::array{found.first, found.last}
                                    : std::array{history.change_seq, Seq{0}}};
  const auto& opinions = history.notes->opinions;
  if (counts(opinions.blocked, false)) {
    return {
        .kind = HealthKind::blocked, .pattern = Pattern::model_check, .evidence = {opinions.seq}};
  }
  const auto& bounds = policy.patterns[static_cast<std::size_t>(health.pattern)];
  const bool confirms = !repeats || ((bounds.stuck > 0 || found.graded) && found.conclusive);
  // More of the same does not make a weak sign stronger.
  const bool lasts = !found.graded && history.notes->suspicion.further >= policy.stuck_threshold;
  if (confirms && (confirmations(history, policy) >= 2 || lasts)) {
    health.kind = trouble_of(health.pattern);
  }
  return health;
}

/// Of a session at rest: what its latest turns repeat. Its stop, request or error is its newest
/// event, so the next turn begins where this one began.
Health rested(const History& history, const Policy& policy) {
  const auto& turn = history.repetition->turns.longest();
  const auto& bounds = policy.patterns[static_cast<std::size_t>(Pattern::repeated_turns)];
  const bool confirmed = bounds.stuck > 0 && turn.count >= bounds.stuck;
  if (!confirmed && turn.count < bounds.suspect)
    return {.kind = HealthKind::idle, .evidence = {history.change_seq}};
  return {.kind = confirmed ? HealthKind::looping : HealthKind::suspect,
          .pattern = Pattern::repeated_turns,
          .evidence = {turn.first, history.seq}};
}

/// A wait for children of which none shows that it works: families.cpp says which.
bool is_quiet_family(const History& history) {
  return history.notes->waiting_for == wait_reports::children && !history.notes->wait_why.empty();
}

/// A session in which nothing moves is quiet after this time, and after ten times what is usual.
constexpr Millis quiet_min{600'000};
constexpr int quiet_factor = 10;

/// Returns the time from which a person may want to look, if nothing moves until then.
Instant quiet_at(const History& history, const PaceNow& pace) {
  const auto bound = std::max(quiet_min, quiet_factor * pace.bounds.own.value_or(Millis{}));
  const auto since = std::max(pace.since, history.last_rise);
  return std::max(unless_away(history, since + bound, bound), history.notes->quiet_until);
}

/// An open call of a command for which its agent has no process.
bool has_lost_call(const History& history) {
  return std::ranges::any_of(*history.open_calls, [](const OpenCall& call) {
    return call.passed < OpenCall::passed_max && call.notes->seen == call_reports::no_process;
  });
}

/// An open call that waits for a session below, which is not well.
bool is_held_by_child(const History& history) {
  return std::ranges::any_of(*history.open_calls, [](const OpenCall& call) {
    return call.passed < OpenCall::passed_max &&
           call.notes->seen.starts_with(call_reports::waits_for);
  });
}

/// True if something besides the next report would show that the agent works, or is gone.
bool is_observable(const History& history) {
  return history.heartbeats > 0 || history.pid > 0 || !history.open_calls->empty() ||
         history.notes->relay_at != Instant{} || server_note(history) != nullptr;
}

/// Judges the session by everything except silence.
Health awake(const History& history, const Policy& policy, Instant now) {
  if (history.lifecycle == Lifecycle::waiting) {
    return {.kind = HealthKind::blocked,
            .pattern = is_quiet_family(history) ? Pattern::quiet : Pattern::declared_wait,
            .evidence = {history.notes->wait_seq}};
  }
  Health health = without_trouble(history);
  if (history.lifecycle == Lifecycle::idle) {
    const bool at_rest = history.open_calls->empty() && server_note(history) == nullptr;
    if (at_rest) return rested(history, policy);
    return health;
  }

  const auto found = history.repetition.has() ? history.repetition->finding(policy) : Finding{};
  if (found.level == Level::stuck) {
    return {.kind = trouble_of(found.pattern),
            .pattern = found.pattern,
            .evidence = {found.first, found.last}};
  }
  Instant until = never;
  const auto* server = server_note(history);
  if (server != nullptr) {
    const auto known_until = server_known_until(history, policy);
    if (now >= known_until) {
      server = nullptr;
    } else {
      until = known_until;
    }
  }
  const bool busy = server != nullptr && is_busy(server->evidence.state);
  if (server != nullptr && server->evidence.state == ServerState::hung) {
    return {.kind = HealthKind::stuck,
            .pattern = Pattern::server_status,
            .valid_until = until,
            .evidence = {server->seq}};
  }
  if (!busy && base_rule(history, policy) &&
      history.loop_beats_since_rise >= policy.stuck_threshold) {
    const auto excused = history.open_calls->empty() ? now : excused_until(history, policy);
    if (now >= excused) {
      return {.kind = HealthKind::stuck,
              .pattern = Pattern::no_state_change,
              .evidence = {history.streak_seq, history.change_seq}};
    }
    until = std::min(until, excused);
  }
  const auto pace = pace_now(history, policy);
  const bool is_lost = !busy && has_lost_call(history);
  if (found.level == Level::suspect || is_lost || (!busy && now >= pace.suspect_at)) {
    health = doubted(history, policy, found);
  } else if (busy && now >= std::min(pace.slow_at, pace.suspect_at)) {
    health = {
        .kind = HealthKind::slow, .pattern = Pattern::server_status, .evidence = {server->seq}};
  } else if (const bool is_held = is_held_by_child(history); is_held || now >= pace.slow_at) {
    health = {.kind = is_observable(history) ? HealthKind::slow : HealthKind::unknown,
              .pattern = Pattern::below_pace,
              .evidence = {history.change_seq}};
    const auto quiet = quiet_at(history, pace);
    if (health.kind == HealthKind::slow && (is_held || now >= quiet))
      health.pattern = Pattern::quiet;
    if (quiet > now) until = std::min(until, quiet);
  }
  for (const auto at : {pace.slow_at, pace.suspect_at}) {
    if (at > now) until = std::min(until, at);
  }
  health.valid_until = until;
  return health;
}

}  // namespace

bool base_rule(const History& history, const Policy& policy) noexcept {
  return history.loop_beats_since_change >= policy.stuck_threshold;
}

Millis silence_bound(const History& history, const Policy& policy) noexcept {
  // Whole intervals, so that rows of regular heartbeats can be merged without moving the bound.
  const auto interval = policy.heartbeat_interval;
  const auto longest = (longest_usual_gap(history) + interval / 2) / interval;
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

PaceNow pace_now(const History& history, const Policy& policy) noexcept {
  PaceNow now{.activity = history.phase, .since = history.pace_from};
  if (!history.said_something) return now;
  const auto& pace = *history.pace;
  const auto quiet_until = history.notes->quiet_until;
  const auto awaited = [](const OpenCall& call) { return call.passed < OpenCall::passed_max; };
  if (std::none_of(history.open_calls->begin(), history.open_calls->end(), awaited)) {
    now.kind = Pace::kind_of_phase(history.phase);
    now.bounds = pace.bounds(now.kind, policy);
    now.slow_at = unless_away(history, now.since + now.bounds.slow, now.bounds.slow);
    now.suspect_at = unless_away(
        history, std::max(now.since, history.last_rise) + now.bounds.suspect, now.bounds.suspect);
  } else {
    // The call that may take longest counts. Its own deadline decides whether it hangs; where it
    // declared none, a tool that takes a day is slow, and its agent waits for it.
    now.slow_at = Instant::min();
    now.suspect_at = Instant::min();
    for (const auto& call : *history.open_calls) {
      if (!awaited(call)) continue;
      const auto kind = Pace::kind_of_tool(call.name);
      const auto bounds = pace.bounds(kind, policy);
      const auto slow_at = unless_away(history, call.worked_from() + bounds.slow, bounds.slow);
      if (slow_at >= now.slow_at) {
        now.activity = call.name;
        now.kind = kind;
        now.bounds = bounds;
        now.since = call.worked_from();
        now.slow_at = slow_at;
      }
      const auto deadline = call.notes->deadline;
      const auto bound = deadline + deadline_grace(deadline);
      const auto quiet_since = std::max(call.worked_from(), history.last_rise);
      now.suspect_at =
          std::max(now.suspect_at,
                   deadline.count() > 0 ? unless_away(history, quiet_since + bound, bound) : never);
    }
  }
  now.slow_at = std::max(now.slow_at, quiet_until);
  return now;
}

Instant server_known_until(const History& history, const Policy& policy) noexcept {
  const auto heard = history.notes->relay_at;
  if (heard == Instant{}) return never;
  return unless_away(history, heard + policy.call_idle_max, policy.call_idle_max);
}

int confirmations(const History& history, const Policy& policy) {
  const bool repeats =
      history.repetition.has() && history.repetition->finding(policy).level != Level::none;
  const auto& opinions = history.notes->opinions;
  const auto* server = server_note(history);
  const bool hung = server != nullptr && server->evidence.state == ServerState::hung;
  return (repeats ? 1 : 0) + (counts(opinions.looping, repeats) ? 1 : 0) + (opinions.self ? 1 : 0) +
         (hung ? 1 : 0);
}

HealthKind trouble_of(Pattern pattern) noexcept {
  return is_repetition(pattern) && pattern != Pattern::nothing_new ? HealthKind::looping
                                                                   : HealthKind::stuck;
}

Health judge(const History& history, const Policy& policy, Instant now) {
  const auto exited_seq = history.notes->exited_seq;
  const bool gone = exited_seq != 0;
  // Only what beats by itself can fall silent; one gap must have been seen to know that it does.
  const bool can_fall_silent = history.periodic_beats >= 2;
  auto silence = gone || can_fall_silent ? silence_begins(history, policy) : never;
  // An agent that does not know of watchdogs is not restarted by one that does.
  if (gone && history.notes->process_found) silence = Instant::min();
  if (now >= silence) {
    if (gone) {
      return {.kind = HealthKind::dead,
              .pattern = Pattern::silence,
              .evidence = {exited_seq, history.sign_seq}};
    }
    return {
        .kind = HealthKind::silent, .pattern = Pattern::silence, .evidence = {history.sign_seq}};
  }
  Health health = awake(history, policy, now);
  health.valid_until = std::min(health.valid_until, silence);
  return health;
}

}  // namespace watchdog
