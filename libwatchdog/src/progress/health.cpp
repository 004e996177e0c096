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
  const auto& absence = *history.absence;
  if (at <= absence.back - absence.gap) return at;
  return std::max(at, absence.back + std::min(absence.gap, bound));
}

/// Until when open calls excuse the absence of state changes.
Instant excused_until(const History& history, const Policy& policy) {
  Instant until = Instant::min();
  for (const auto& call : *history.open_calls) {
    const auto deadline = call.notes->deadline;
    const auto allowed = deadline.count() > 0 ? deadline : policy.call_idle_max;
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

/// A model's opinion counts if it was sure, said it twice, or something else says so too.
bool counts(std::int32_t times, bool corroborated) {
  return times >= 2 || (times == 1 && corroborated);
}

/// Something may be wrong, or is: repetition, and what was thought of it.
Health doubted(const History& history, const Policy& policy, const Finding& found) {
  const bool repeats = found.level != Level::none;
  Health health{.kind = HealthKind::suspect,
                .pattern = repeats ? found.pattern : Pattern::F3,
                .evidence = repeats ? std::array{found.first, found.last}
                                    : std::array{history.change_seq, Seq{0}}};
  const auto& opinions = history.notes->opinions;
  if (counts(opinions.blocked, false)) {
    return {.kind = HealthKind::blocked, .pattern = Pattern::F6, .evidence = {opinions.seq}};
  }
  const auto& bounds = policy.patterns[static_cast<std::size_t>(health.pattern)];
  const bool convicts = !repeats || (bounds.stuck > 0 && found.conclusive);
  if (convicts && (confirmations(history, policy) >= 2 ||
                   history.notes->suspicion.further >= policy.stuck_threshold)) {
    health.kind = trouble_of(health.pattern);
  }
  return health;
}

/// What the events say apart from silence.
Health awake(const History& history, const Policy& policy, Instant now) {
  if (history.lifecycle == Lifecycle::waiting) {
    return {
        .kind = HealthKind::blocked, .pattern = Pattern::F7, .evidence = {history.notes->wait_seq}};
  }
  Health health = without_trouble(history);
  if (history.lifecycle == Lifecycle::idle) return health;

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
            .pattern = Pattern::F5,
            .valid_until = until,
            .evidence = {server->seq}};
  }
  if (!busy && base_rule(history, policy) &&
      history.loop_beats_since_rise >= policy.stuck_threshold) {
    const auto excused = history.open_calls->empty() ? now : excused_until(history, policy);
    if (now >= excused) {
      return {.kind = HealthKind::stuck,
              .pattern = Pattern::F1,
              .evidence = {history.streak_seq, history.change_seq}};
    }
    until = std::min(until, excused);
  }
  const auto pace = pace_now(history, policy);
  if (found.level == Level::suspect || (!busy && now >= pace.suspect_at)) {
    health = doubted(history, policy, found);
  } else if (busy && now >= std::min(pace.slow_at, pace.suspect_at)) {
    health = {.kind = HealthKind::slow, .pattern = Pattern::F5, .evidence = {server->seq}};
  } else if (now >= pace.slow_at) {
    health = {.kind = HealthKind::slow, .pattern = Pattern::F3, .evidence = {history.change_seq}};
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
      const auto slow_at = unless_away(history, call.since + bounds.slow, bounds.slow);
      if (slow_at >= now.slow_at) {
        now.activity = call.name;
        now.kind = kind;
        now.bounds = bounds;
        now.since = call.since;
        now.slow_at = slow_at;
      }
      const auto deadline = call.notes->deadline;
      const auto bound = std::max(bounds.suspect, deadline);
      const auto quiet_since = std::max(call.since, history.last_rise);
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
  return is_repetition(pattern) && pattern != Pattern::R11 ? HealthKind::looping
                                                           : HealthKind::stuck;
}

Health judge(const History& history, const Policy& policy, Instant now) {
  const auto exited_seq = history.notes->exited_seq;
  const bool gone = exited_seq != 0;
  // Only what beats by itself can fall silent; one gap must have been seen to know that it does.
  const bool can_fall_silent = history.periodic_beats >= 2;
  const auto silence = gone || can_fall_silent ? silence_begins(history, policy) : never;
  if (now >= silence) {
    if (gone) {
      return {.kind = HealthKind::dead,
              .pattern = Pattern::F4,
              .evidence = {exited_seq, history.sign_seq}};
    }
    return {.kind = HealthKind::silent, .pattern = Pattern::F4, .evidence = {history.sign_seq}};
  }
  Health health = awake(history, policy, now);
  health.valid_until = std::min(health.valid_until, silence);
  return health;
}

namespace {

/// What the session called last, for a sentence.
std::string tool_in(const Repetition& repetition) {
  return repetition.tool.empty() ? std::string("a tool") : repetition.tool;
}

std::string times(double count) {
  return counted(static_cast<std::int64_t>(count), "time");
}

std::string evidence_shown(double evidence) {
  auto text = std::to_string(evidence);
  return text.substr(0, text.find('.') + 3);
}

/// What is repeated, in a sentence.
std::string repetition_in(const Finding& found, const Repetition& repetition) {
  switch (found.pattern) {
    case Pattern::R1:
      return "it called " + tool_in(repetition) + " " + times(found.count) +
             " in a row with the same arguments and got the same result";
    case Pattern::R2:
      return "it called " + tool_in(repetition) + " " + times(found.count) +
             " in a row with the same arguments, and each time it failed";
    case Pattern::R3:
      return "its calls go round in a cycle: " +
             counted(static_cast<std::int64_t>(found.count), "lap");
    case Pattern::R4:
      return "its latest calls repeat what it did before (evidence " +
             evidence_shown(std::max(repetition.score, 0.0)) + ")";
    case Pattern::R5:
      return tool_in(repetition) + " failed " + times(found.count) +
             " in a row with the same error, whatever the arguments";
    case Pattern::R6:
      return counted(static_cast<std::int64_t>(found.count), "call") +
             " in a row could not be understood";
    case Pattern::R7:
      return "it said the same " + times(found.count) + " with nothing between";
    case Pattern::R7b:
      return "it sent " + counted(static_cast<std::int64_t>(found.count), "message") +
             " with nothing done between them";
    case Pattern::R8:
      return "its text repeats itself";
    case Pattern::R9:
      return "its state goes back and forth: " +
             counted(static_cast<std::int64_t>(found.count), "lap") + " of the same states";
    case Pattern::R10:
      return "it shortened its context " + times(found.count) + " with nothing between";
    case Pattern::R11:
      return counted(static_cast<std::int64_t>(found.count), "round") +
             " of calls brought nothing new";
    default:
      return "it gets nowhere";
  }
}

std::string pace_in(const History& history, const Policy& policy, bool suspect) {
  const auto pace = pace_now(history, policy);
  std::string what = pace.activity.empty() ? "its next state change" : std::string(pace.activity);
  return what + " takes longer than " + seconds(suspect ? pace.bounds.suspect : pace.bounds.slow) +
         " (usual for it: " + seconds(pace.bounds.usual) + ")" +
         (suspect ? ", and nothing else moves" : "");
}

std::string server_in(const Health& health, const History& history) {
  const auto* server = server_note(history);
  const auto words = server == nullptr ? std::string() : server_in_words(*server);
  if (!words.empty()) return "its model's server " + words;
  return health.kind == HealthKind::stuck ? "its model's server hung"
                                          : "its model's server was busy";
}

std::string doubt_in(const Health& health, const History& history, const Policy& policy) {
  if (!is_repetition(health.pattern)) return pace_in(history, policy, true);
  return repetition_in(history.repetition->finding(policy), *history.repetition);
}

}  // namespace

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
    case HealthKind::slow:
      if (health.pattern == Pattern::F5) return server_in(health, history);
      return pace_in(history, policy, false);
    case HealthKind::suspect:
      return doubt_in(health, history, policy);
    case HealthKind::looping:
      return doubt_in(health, history, policy);
    case HealthKind::stuck:
      if (health.pattern == Pattern::F1) {
        return "its loop went round " + counted(history.loop_beats_since_change, "time") +
               " without a state change (limit " + std::to_string(policy.stuck_threshold) + ")";
      }
      if (health.pattern == Pattern::F5) return server_in(health, history);
      return doubt_in(health, history, policy);
    case HealthKind::blocked:
      if (health.pattern == Pattern::F6) return "a model that was asked says that it cannot go on";
      return "it waits for " + (history.notes->waiting_for.empty() ? "something it did not name"
                                                                   : history.notes->waiting_for);
    case HealthKind::silent:
      return "its heartbeats stopped: nothing for more than " +
             seconds(silence_bound(history, policy));
    case HealthKind::dead:
      return "its process" + (history.pid > 0 ? " " + std::to_string(history.pid) : "") +
             " is gone and nothing was heard of it since";
  }
  return std::string(name_of(health.kind));
}

std::string evidence_note(const Health& health, std::size_t at) {
  if (health.pattern == Pattern::F5) return "what its model's server does";
  switch (health.kind) {
    case HealthKind::suspect:
    case HealthKind::looping:
      if (is_repetition(health.pattern)) return at == 0 ? "where it began" : "its newest round";
      return "the newest state change";
    case HealthKind::stuck:
      if (is_repetition(health.pattern)) return at == 0 ? "where it began" : "its newest round";
      if (health.pattern != Pattern::F1) return "the newest state change";
      return at == 0 ? "first pass of its loop without a state change" : "the newest state change";
    case HealthKind::blocked:
      return health.pattern == Pattern::F6 ? "what the model answered" : "the wait it declared";
    case HealthKind::dead:
      return at == 0 ? "its process was found gone" : "the last sign of life";
    case HealthKind::silent:
      return "the last sign of life";
    default:
      return "the newest state change";
  }
}

}  // namespace watchdog
