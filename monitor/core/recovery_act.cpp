#include "core/recovery_act.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace watchdog::monitor {
namespace {

constexpr AuditAction action_of(RecoveryStep step) {
  switch (step) {
    case RecoveryStep::nudge:
      return AuditAction::nudge;
    case RecoveryStep::refuse:
      return AuditAction::refuse;
    case RecoveryStep::end_call:
      return AuditAction::end_call;
    case RecoveryStep::command:
      return AuditAction::command;
    case RecoveryStep::cancel:
      break;
  }
  return AuditAction::cancel;
}

}  // namespace

std::string PlannedAct::id() const {
  return "rule:" + decision.rule + ":" + std::to_string(verdict) + ":" + std::to_string(number);
}

std::string PlannedAct::words() const {
  const auto step = std::string(name_of(decision.step));
  if (decision.is_held_out) return std::string(held_out_words) + ": " + step;
  return (decision.dry_run ? std::string(would_words) : "did ") + step;
}

PlannedAct planned(RecoveryDecision decision, const Health& health, int done) {
  return {.decision = std::move(decision),
          .proof = proof_of(health),
          .verdict = health.evidence[0],
          .number = done + 1};
}

std::string proof_of(const Health& health) {
  auto text = std::string(name_of(health.kind)) + " (" + std::string(name_of(health.pattern)) + ")";
  const auto [first, last] = std::minmax(health.evidence[0], health.evidence[1]);
  if (last == 0) return text;
  if (first == 0) return text + ", event " + std::to_string(last);
  return text + ", events " + std::to_string(first) + " to " + std::to_string(last);
}

std::optional<ProvenOutcome> proven(std::string_view outcome) {
  const auto colon = outcome.rfind(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  const auto proof = outcome.substr(colon + 2);
  const auto word = proof.substr(0, proof.find(' '));
  if (!named<HealthKind>(word) || !proof.substr(word.size()).starts_with(" (")) return std::nullopt;
  ProvenOutcome parts{.result = std::string(outcome.substr(0, colon)), .proof = std::string(proof)};
  const auto number = [&](std::string_view before) {
    Seq value = 0;
    const auto at = proof.find(before);
    if (at != std::string_view::npos)
      std::from_chars(proof.data() + at + before.size(), proof.data() + proof.size(), value);
    return value;
  };
  if (const auto only = number(", event "); only > 0) {
    parts.first = parts.last = only;
  } else {
    parts.first = number(", events ");
    parts.last = number(" to ");
  }
  return parts;
}

Report claim_of(const PlannedAct& act) {
  Report claim;
  claim.kind = ReportKind::message;
  claim.name = "hook";
  claim.content =
      "rule " + act.decision.rule + " " + act.words() + ": " + act.proof + ": " + act.fact;
  claim.event_id = act.id();
  return claim;
}

AuditEntry entry_of(const PlannedAct& act, const std::string& session,
                    const std::string& came_of_it) {
  const auto done = act.decision.is_held_out ? std::string(held_out_words)
                    : act.decision.dry_run   ? act.words()
                                             : std::string("ok");
  return {.at = system_clock().wall(),
          .actor = "rule:" + act.decision.rule,
          .action = action_of(act.decision.step),
          .target = session,
          .outcome = (came_of_it.empty() ? done : came_of_it) + ": " + act.proof};
}

}  // namespace watchdog::monitor
