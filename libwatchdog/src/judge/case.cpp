#include "judge/alert_rule.h"
#include "judge/attention.h"
#include "watchdog/health.h"

namespace watchdog {

void Case::conclude(Instant now, std::vector<Transition>& changes, const DetailProvider* details) {
  const Health next = judge(history, *policy, now);
  if (!next.same_as(health)) {
    health_since = history.at + (now - history.tick);
    changes.push_back(
        {.session = session,
         .seq = history.seq,
         .tick = now,
         .quiet = now - history.tick,
         .at = health_since,
         .from = health.kind,
         .health = next,
         .reason = reason_of(next, history, *policy, now),
         .public_reason = public_reason_of(next, history, *policy, now),
         .policy_digest = digest_of(*policy),
         .wait = next.kind == HealthKind::blocked ? cause_of_wait(history) : AlertCause::blocked});
    if (details != nullptr && is_trouble(next.kind))
      changes.back().situation = (*details)(*this, now);
  }
  health = next;
  // An acknowledgement ends with the trouble.
  if (history.notes->acknowledged && !is_trouble(health.kind))
    history.notes.edit().acknowledged = false;
  remember();
}

/// Updates what the next events depend on: a confirmation stays until enough is new, and a
/// suspicion counts the events after it.
void Case::remember() {
  const bool suspected = health.kind == HealthKind::suspect;
  if (suspected && history.notes->suspicion.seq == 0) {
    history.notes.edit().suspicion = {.seq = history.seq};
  } else if (!suspected && history.notes->suspicion.seq != 0) {
    history.notes.edit().suspicion = {};
  }
  // The next word of the model's server or the next state change acquits at once.
  const bool revocable =
      health.pattern == Pattern::no_state_change || health.pattern == Pattern::server_status;
  const bool confirmed =
      health.kind == HealthKind::looping || (health.kind == HealthKind::stuck && !revocable);
  if (confirmed && history.repetition->alarm.pattern == Pattern::none) {
    auto& repetition = history.repetition.edit();
    auto found = repetition.finding(*policy);
    if (found.pattern == Pattern::none) {
      found = {.pattern = health.pattern, .first = health.evidence[0], .last = history.seq};
    }
    repetition.confirm(found);
  }
}

void Case::expire(Instant now, std::vector<Transition>& changes, const DetailProvider* details) {
  while (!is_end(history.lifecycle) && health.valid_until <= now) {
    conclude(health.valid_until, changes, details);
  }
}

void Case::fold(const Event& event, std::vector<Transition>& changes,
                const DetailProvider* details) {
  const auto* absence = std::get_if<ObserverGap>(&event.report.detail);
  const auto* beats = std::get_if<Heartbeats>(&event.report.detail);
  Instant until = event.tick;
  // Nothing expired while the observer was away: it could not have received reports.
  if (absence != nullptr) until -= absence->gap;
  // The rows that were merged into this one kept it from expiring.
  if (beats != nullptr && beats->first_stored != Instant{}) until = beats->first_stored;
  expire(until, changes, details);
  folded = event.seq;
  apply(history, event, *policy);
  if (const auto* patch = std::get_if<PolicyPatch>(&event.report.detail); patch && !event.late) {
    // Two changes that were each allowed may not be allowed together: then the first one stays.
    if (auto next = patched(*policy, *patch); check(next)) {
      policy.set(std::move(next));
      own.set(patched(*own, *patch));
    }
  }
  if (is_end(history.lifecycle)) {
    health.valid_until = never;
    return;
  }
  conclude(event.tick, changes, details);
}

}  // namespace watchdog
