// The state is the health, with three exceptions. An end hides the health. A wait is for a person
// or for something else. A rest is a person's turn, or something goes on without the person. The
// attention follows from the state, and from how long ago it began.
#include "judge/attention.h"

#include <algorithm>
#include <utility>

#include "judge/unwell_child.h"

namespace watchdog {
namespace {

Standing standing_of_end(Lifecycle end, bool settled) noexcept {
  const auto fresh = settled ? Attention::resting : Attention::needs_you;
  switch (end) {
    case Lifecycle::failed:
      return {SessionState::failed, fresh};
    case Lifecycle::incomplete:
      return {SessionState::incomplete, fresh};
    case Lifecycle::cancelled:
      return {SessionState::cancelled, Attention::resting};
    default:
      return {SessionState::completed, Attention::resting};
  }
}

SessionState state_of(const StandingFacts& facts) noexcept {
  switch (facts.health) {
    case HealthKind::unknown:
      return SessionState::unknown;
    case HealthKind::starting:
      return SessionState::starting;
    case HealthKind::progressing:
      return SessionState::progressing;
    case HealthKind::slow:
      return SessionState::slow;
    case HealthKind::suspect:
      return SessionState::suspect;
    case HealthKind::stuck:
      return SessionState::stuck;
    case HealthKind::looping:
      return SessionState::looping;
    case HealthKind::silent:
      return SessionState::silent;
    case HealthKind::dead:
      return SessionState::dead;
    case HealthKind::idle:
      return facts.settled ? SessionState::idle : SessionState::your_turn;
    case HealthKind::blocked:
      break;
  }
  const bool waits = facts.lifecycle == Lifecycle::waiting;
  return !waits || is_for_person(facts.waits_for) ? SessionState::needs_input
                                                  : SessionState::waiting;
}

}  // namespace

bool is_for_person(std::string_view waits_for) noexcept {
  // Words that agents and their authors use for the same.
  constexpr std::string_view words[] = {wait_reports::approval,
                                        wait_reports::input,
                                        wait_reports::login,
                                        wait_reports::billing,
                                        "permission",
                                        "answer",
                                        "question",
                                        "confirmation",
                                        "user",
                                        "human"};
  return std::ranges::find(words, waits_for) != std::end(words);
}

bool waits_for_person(const History& history) noexcept {
  return history.lifecycle != Lifecycle::waiting || is_for_person(history.notes->waiting_for);
}

bool is_turn_of_person(const History& history) noexcept {
  if (history.lifecycle != Lifecycle::idle) return false;
  const auto& notes = *history.notes;
  if (!notes.idle_why.empty()) return !notes.idle_why.starts_with(idle_reports::goes_on);
  return std::ranges::any_of(history.sources, [](const SourceNote& source) {
    return source.origin != ReportOrigin::proxy && source.origin != ReportOrigin::monitor;
  });
}

Attention attention_of(SessionState state) noexcept {
  switch (state) {
    case SessionState::dead:
    case SessionState::stuck:
    case SessionState::looping:
    case SessionState::silent:
    case SessionState::failed:
    case SessionState::needs_input:
    case SessionState::incomplete:
      return Attention::needs_you;
    case SessionState::suspect:
    case SessionState::waiting:
      return Attention::watch;
    case SessionState::your_turn:
      return Attention::ready;
    case SessionState::idle:
    case SessionState::cancelled:
    case SessionState::completed:
      return Attention::resting;
    case SessionState::slow:
    case SessionState::unknown:
    case SessionState::starting:
    case SessionState::progressing:
      break;
  }
  return Attention::working;
}

Standing standing_of(const StandingFacts& facts) noexcept {
  if (is_end(facts.lifecycle)) return standing_of_end(facts.lifecycle, facts.settled);
  const auto state = state_of(facts);
  // It waits for children only while one of them works.
  if (state == SessionState::waiting && facts.waits_for == wait_reports::children)
    return {state, facts.quiet ? Attention::watch : Attention::working};
  // Slow is not stuck. But a person may want to look where nothing shows that it works.
  if (state == SessionState::slow && facts.quiet) return {state, Attention::watch};
  // A question still needs its person. Somebody looks after a trouble that is acknowledged.
  if (facts.known && is_trouble(facts.health) && attention_of(state) == Attention::needs_you)
    return {state, state == SessionState::dead ? Attention::resting : Attention::watch};
  return {state, attention_of(state)};
}

Standing standing_of(const Case& judged, WallTime wall, Family family) noexcept {
  const auto& history = judged.history;
  const auto& notes = *history.notes;
  const bool is_settled = notes.outcome
                              ? notes.acknowledged || wall - notes.outcome_at >= end_fresh_for
                              : family == Family::child || !is_turn_of_person(history) ||
                                    wall - judged.health_since >= end_fresh_for;
  auto standing = standing_of({.lifecycle = history.lifecycle,
                               .health = judged.health.kind,
                               .waits_for = notes.waiting_for,
                               .settled = is_settled,
                               .quiet = judged.health.pattern == Pattern::quiet,
                               .known = notes.acknowledged});
  // A family is as well as its worst member.
  const bool is_held =
      standing.state == SessionState::waiting || standing.state == SessionState::slow;
  if (is_held && unwell_child::says(history, unwell_child::needs_person))
    standing.attention = Attention::needs_you;
  return standing;
}

WallTime standing_since(const Case& judged, Instant now, WallTime wall) noexcept {
  const auto& history = judged.history;
  const auto& notes = *history.notes;
  if (notes.outcome) return notes.outcome_at;
  // One wait may follow another, and the health stays.
  const bool waits = history.lifecycle == Lifecycle::waiting && notes.wait_since != Instant{};
  const bool is_wait = waits && judged.health.kind == HealthKind::blocked;
  return is_wait ? wall - (now - notes.wait_since) : judged.health_since;
}

bool is_before(const Urgency& a, const Urgency& b) noexcept {
  const auto [x, y] = std::pair(a.standing, b.standing);
  if (x.attention != y.attention) return x.attention < y.attention;
  if (x.state != y.state) return x.state < y.state;
  return x.attention <= Attention::watch ? a.since < b.since : a.since > b.since;
}

AlertCause cause_of_wait(const History& history) noexcept {
  if (waits_for_person(history)) return AlertCause::needs_input;
  return history.notes->waiting_for == wait_reports::quota ? AlertCause::quota
                                                           : AlertCause::blocked;
}

}  // namespace watchdog
