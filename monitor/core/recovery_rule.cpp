// `decide` asks in the order of the promises. A pause stops everything. Only a confirmed verdict on
// a running session counts. Then come the rules, by their step. A nudge says what the judge
// counted. Its text has no advice, so the agent's model decides.
#include "core/recovery_rule.h"

#include <algorithm>

#include "judge/alert_rule.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view sender = "watchdog-monitor (a local monitor that the user installed): ";

/// A verdict about what the agent itself repeats. A hung server, a pace and a model's opinion are
/// not meant, and neither are turns: an API's error may end them.
constexpr bool is_own_repetition(Pattern pattern) {
  return pattern == Pattern::no_state_change ||
         (is_repetition(pattern) && pattern != Pattern::repeated_turns);
}

bool is_state(RecoveryState state, const Health& health) {
  switch (state) {
    case RecoveryState::looping:
      return health.kind == HealthKind::looping;
    case RecoveryState::stuck:
      return health.kind == HealthKind::stuck;
    case RecoveryState::quiet:
      return health.kind == HealthKind::slow && health.pattern == Pattern::quiet;
    case RecoveryState::dead:
      break;
  }
  return health.kind == HealthKind::dead;
}

/// True if the agent itself repeats something, says the verdict.
bool says_repetition(const Health& health) {
  return health.kind == HealthKind::looping || health.kind == HealthKind::stuck;
}

bool is_for(const RecoveryRule& rule, const RecoveryFacts& facts) {
  return std::ranges::any_of(rule.on,
                             [&](RecoveryState state) { return is_state(state, facts.health); }) &&
         (rule.agent.empty() || rule.agent == facts.agent) &&
         (rule.label.empty() || std::ranges::find(facts.labels, rule.label) != facts.labels.end());
}

/// Why nothing may act on the session now; empty: something may.
std::string_view hindrance(const RecoveryFacts& facts) {
  const auto& health = facts.health;
  const bool repeats = says_repetition(health);
  if (facts.is_paused) return "recovery is paused";
  if (!repeats && !is_state(RecoveryState::quiet, health) && !is_state(RecoveryState::dead, health))
    return "nothing is confirmed";
  if (repeats && !is_own_repetition(health.pattern)) return "the agent itself repeats nothing";
  if (facts.lifecycle != Lifecycle::running) return "the session waits, rests or has ended";
  if (facts.is_cancelled) return "the session is cancelled";
  if (facts.is_server_unwell) return "the model server hangs or cannot be reached";
  if (repeats && !facts.is_identical_call && facts.repeated_at <= facts.acted_at)
    return "nothing was repeated since the newest act";
  return {};
}

int done_by(const RecoveryFacts& facts, const std::string& rule) {
  const auto found = facts.acts.find(rule);
  return found == facts.acts.end() ? 0 : found->second;
}

RecoveryFacts::Reach reach_of(RecoveryStep step, const RecoveryFacts& facts) {
  switch (step) {
    case RecoveryStep::nudge:
      return facts.nudge;
    case RecoveryStep::refuse:
      return {.now = facts.refuse.now && facts.is_identical_call, .ever = facts.refuse.ever};
    case RecoveryStep::end_call:
      return {.now = facts.end_call.now && facts.is_pause_over, .ever = facts.end_call.ever};
    case RecoveryStep::command:
      return {.now = facts.command.now && facts.is_pause_over, .ever = facts.command.ever};
    case RecoveryStep::cancel:
      break;
  }
  return facts.cancel;
}

/// `Bash `pytest tests/a``
std::string named_call(std::string_view tool, std::string_view command) {
  auto text = tool.empty() ? std::string("a tool") : std::string(tool);
  if (!command.empty()) text += " `" + std::string(command) + "`";
  return text;
}

std::string counted_calls(std::int32_t count, std::string_view tool, std::string_view command) {
  return "the last " + std::to_string(count) + " calls of " + named_call(tool, command);
}

}  // namespace

RecoveryDecision decide(const RecoveryRules& rules, const RecoveryFacts& facts) {
  if (const auto why = hindrance(facts); !why.empty()) return {.why_not = why};
  for (const auto step : {RecoveryStep::nudge, RecoveryStep::refuse, RecoveryStep::end_call,
                          RecoveryStep::cancel, RecoveryStep::command}) {
    const auto reach = reach_of(step, facts);
    if (!reach.ever) continue;
    for (const auto& [name, rule] : rules) {
      if (rule.step != step || !is_for(rule, facts) || facts.off.contains(name)) continue;
      const bool is_held_out = !rule.dry_run && facts.draw < rule.hold_out;
      if (is_held_out && done_by(facts, name) > 0) return {.why_not = "the verdict is held out"};
      if (done_by(facts, name) >= rule.at_most) continue;
      if (!reach.now) return {.why_not = "the step that is next is for another moment"};
      return {.rule = name,
              .step = step,
              .dry_run = rule.dry_run,
              .is_held_out = is_held_out,
              .why_not = {}};
    }
  }
  return {.why_not = "no rule is left for this verdict"};
}

Millis pause_after(int number) {
  constexpr Millis first{60'000};
  constexpr int factor = 5;
  auto pause = first;
  for (int before = 1; before < number; ++before) pause *= factor;
  return pause;
}

bool has_verdict(const Case& judged) {
  const auto& health = judged.health;
  return judged.history.lifecycle == Lifecycle::running &&
         (is_trouble(health.kind) || health.pattern == Pattern::quiet);
}

bool is_server_unwell(const History& history) {
  return std::ranges::any_of(*history.notes->server, [](const ServerNote& note) {
    const auto state = note.evidence.state;
    return state == ServerState::hung || state == ServerState::restarted ||
           state == ServerState::gone;
  });
}

Seq newest_repeat(const Repetition& repetition) {
  const bool is_repeat = !repetition.steps.empty() && repetition.steps.back().again;
  return is_repeat ? repetition.steps.back().seq : 0;
}

bool is_identical_call(const Repetition& repetition, const CallMark& call) {
  if (call.blind || call.use != ToolUse::ordinary) return false;
  const Step* newest = nullptr;
  for (auto step = repetition.steps.rbegin(); step != repetition.steps.rend(); ++step) {
    if (step->call == call.call && !step->blind) {
      if (newest != nullptr) return newest->same_result(*step);
      newest = &*step;
    }
    // A new call may change the next result.
    if (newest == nullptr && !step->again) return false;
  }
  return false;
}

std::string fact_of(const Case& judged, std::string_view command) {
  const auto& repetition = *judged.history.repetition;
  const auto pattern = judged.health.pattern;
  // After a new call the count begins again, but the verdict stays for a while.
  const auto times = pattern == Pattern::same_call           ? repetition.same_result.count
                     : pattern == Pattern::same_failing_call ? repetition.same_error.count
                                                             : 0;
  if (times < 2) {
    return redact(public_reason_of(judged.health, judged.history, *judged.policy, {}).sentence) +
           ".";
  }
  return redact(counted_calls(times, repetition.tool, command)) +
         (pattern == Pattern::same_call ? " gave the same result."
                                        : " failed, with the same arguments.");
}

std::string refusal_of(const Repetition& repetition, const OpenCall& call) {
  const Step* newest = nullptr;
  std::int32_t times = 0;
  for (auto step = repetition.steps.rbegin(); step != repetition.steps.rend(); ++step) {
    if (step->call != call.mark.call || step->blind) continue;
    if (newest == nullptr) newest = &*step;
    if (!newest->same_result(*step)) break;
    ++times;
  }
  return redact(counted_calls(times, call.name, call.notes->command)) +
         " gave the same result, so this one was not run.";
}

std::string said_to_agent(std::string_view fact) {
  return std::string(first_characters(std::string(sender) + std::string(fact), said_chars_max));
}

}  // namespace watchdog::monitor
