#include "watchdog/wait_rule.h"

#include <algorithm>

namespace watchdog {
namespace {

bool is_met(const Awaited& awaited, const Sighting& now) {
  const bool ended = is_end(now.lifecycle);
  switch (awaited.goal) {
    case Goal::outcome:
      return now.lifecycle == lifecycle_of(awaited.outcome);
    case Goal::end:
      return ended;
    case Goal::health:
      return !ended && now.health == awaited.health;
    case Goal::state_change:
    case Goal::condition:
      return now.holds;
  }
  return false;
}

bool is_trouble_that_fails(HealthKind health) {
  return health == HealthKind::stuck || health == HealthKind::looping;
}

}  // namespace

Result<Awaited> awaited_from(std::string_view text) {
  Awaited awaited;
  const auto equals = text.find('=');
  const auto word = text.substr(0, equals);
  const auto value = equals == text.npos ? std::string_view() : text.substr(equals + 1);
  if (const auto outcome = named<OutcomeKind>(text)) {
    awaited.outcome = *outcome;
    return awaited;
  }
  if (text == name_of(Goal::end)) {
    awaited.goal = Goal::end;
    return awaited;
  }
  if (const auto health = named<HealthKind>(value); health && word == name_of(Goal::health)) {
    awaited.goal = Goal::health;
    awaited.health = *health;
    return awaited;
  }
  if (word == name_of(Goal::state_change) && (equals == text.npos || !value.empty())) {
    awaited.goal = Goal::state_change;
    awaited.what = value;
    return awaited;
  }
  return Error{ErrorCode::invalid,
               "nobody can wait for '" + std::string(text) +
                   "': it is completed, failed, incomplete, cancelled, end, health=NAME, "
                   "state-change or state-change=TYPE",
               "for"};
}

std::string text_of(const Awaited& awaited) {
  std::string text(name_of(awaited.goal));
  switch (awaited.goal) {
    case Goal::outcome:
      return std::string(name_of(awaited.outcome));
    case Goal::end:
      return text;
    case Goal::health:
      return text.append("=").append(name_of(awaited.health));
    case Goal::state_change:
      return awaited.what.empty() ? text : text + "=" + awaited.what;
    case Goal::condition:
      return awaited.what.empty() ? text : awaited.what;
  }
  return text;
}

void see(Vigil& vigil, const Sighting& next) noexcept {
  vigil.latest = next;
  if (is_trouble_that_fails(next.health)) {
    if (!vigil.trouble) vigil.trouble = next;
  } else if (next.health != HealthKind::silent) {  // silence takes nothing back
    vigil.trouble.reset();
  }
}

void forgive(Vigil& vigil) noexcept {
  if (vigil.trouble) vigil.trouble = vigil.latest;
}

std::int64_t further_iterations(const Vigil& vigil) noexcept {
  if (!vigil.trouble) return 0;
  return std::max(vigil.latest.beats - vigil.trouble->beats,
                  vigil.latest.rounds - vigil.trouble->rounds);
}

Ruling ruling(const Awaited& awaited, const Vigil& vigil) noexcept {
  const auto& now = vigil.latest;
  if (is_met(awaited, now)) return Ruling::met;
  if (is_end(now.lifecycle)) return Ruling::ended;
  if (now.health == HealthKind::dead || (now.gone && !awaited.restarts)) return Ruling::dead;
  if (awaited.on_stuck == OnStuck::keep || !vigil.trouble ||
      further_iterations(vigil) < awaited.further_max) {
    return Ruling::go_on;
  }
  return awaited.on_stuck == OnStuck::ask ? Ruling::ask : Ruling::stuck;
}

bool is_change(const Report& report, std::string_view type) noexcept {
  if (report.kind == ReportKind::state_change) return type.empty() || report.name == type;
  const bool finished = report.kind == ReportKind::tool_result || report.kind == ReportKind::error;
  return finished && (type.empty() || type == name_of(ReportKind::tool_call));
}

void count_iterations(Sighting& sighting, const History& before_it, const Event& event,
                      const History& after_it) noexcept {
  if (event.late) return;
  if (const auto* beats = std::get_if<Beats>(&event.report.detail)) {
    sighting.beats += loop_beats_in(before_it, *beats);
  }
  const bool over = event.report.kind == ReportKind::tool_result || is_failure(event.report.kind);
  if (over && after_it.open_calls->empty()) ++sighting.rounds;
}

}  // namespace watchdog
