#include <algorithm>

#include "text/nearest.h"
#include "watchdog/wait.h"

namespace watchdog {
namespace {

bool is_met(const Awaited& awaited, const SessionSample& now) {
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
  if (word == name_of(Goal::health) && equals != text.npos)
    return Error{ErrorCode::invalid, unknown_word("health", value, all_names<HealthKind>()), "for"};
  auto goals = all_names<OutcomeKind>();
  for (const auto* goal : {"end", "health=NAME", "state-change", "state-change=TYPE"})
    goals.emplace_back(goal);
  return Error{ErrorCode::invalid, unknown_word("goal", text, goals), "for"};
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

std::optional<Seq> stuck_since(const std::vector<Transition>& changes) noexcept {
  std::optional<Seq> since;
  for (const auto& change : changes) {
    if (is_stuck(change.health.kind)) {
      if (!since) since = change.seq;
    } else if (change.health.kind != HealthKind::silent) {
      since.reset();
    }
  }
  return since;
}

void see(WaitMemory& memory, const SessionSample& next) noexcept {
  memory.latest = next;
  if (is_stuck(next.health)) {
    if (!memory.trouble) memory.trouble = next;
  } else if (next.health != HealthKind::silent) {  // silence takes nothing back
    memory.trouble.reset();
  }
}

void forgive(WaitMemory& memory) noexcept {
  if (memory.trouble) memory.trouble = memory.latest;
}

std::int64_t further_iterations(const WaitMemory& memory) noexcept {
  if (!memory.trouble) return 0;
  return std::max(memory.latest.beats - memory.trouble->beats,
                  memory.latest.rounds - memory.trouble->rounds);
}

Ruling ruling(const Awaited& awaited, const WaitMemory& memory) noexcept {
  const auto& now = memory.latest;
  if (is_met(awaited, now)) return Ruling::met;
  if (is_end(now.lifecycle)) return Ruling::ended;
  if (now.health == HealthKind::dead || (now.gone && !awaited.restarts)) return Ruling::dead;
  const bool stays_stuck = awaited.on_stuck != OnStuck::keep && memory.trouble &&
                           further_iterations(memory) >= awaited.further_max;
  if (!stays_stuck) {
    if (awaited.on_suspect == OnDoubt::fail && now.health == HealthKind::suspect)
      return Ruling::suspect;
    return awaited.on_quiet == OnDoubt::fail && now.quiet ? Ruling::quiet : Ruling::go_on;
  }
  return awaited.on_stuck == OnStuck::ask ? Ruling::ask : Ruling::stuck;
}

bool is_change(const Report& report, std::string_view type) noexcept {
  if (report.kind == ReportKind::state_change) return type.empty() || report.name == type;
  const bool finished = report.kind == ReportKind::tool_result || report.kind == ReportKind::error;
  return finished && (type.empty() || type == name_of(ReportKind::tool_call));
}

void IterationCount::fold(const Event& event) {
  if (event.late) return;
  const auto kind = event.report.kind;
  if (const auto* said = std::get_if<Heartbeats>(&event.report.detail)) {
    beats += loop_beats_in(position, *said);
    if (said->iteration) position.iteration = said->iteration;
    if (!said->phase.empty()) position.phase = said->phase;
    position.gives_position |= said->iteration.has_value() || !said->phase.empty();
  } else if (kind == ReportKind::tool_call) {
    ++open_calls;
  } else if (kind == ReportKind::tool_result || is_failure(kind)) {
    open_calls = std::max<std::int64_t>(open_calls - 1, 0);
    if (open_calls == 0) ++rounds;
  }
}

}  // namespace watchdog
