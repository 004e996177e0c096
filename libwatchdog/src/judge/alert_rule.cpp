// Decides when an alert, a repeated alert or a recovery is due. `fold` moves a session's state
// to a new condition; `next_due_notice` does what only time makes due. Both are pure, and the
// store calls them in the transaction of the transition.
//
// The state is a set of facts, not one of a few phases: a session that flaps may be snoozed while
// its next wait ripens. A phase would have to name each combination.
#include "judge/alert_rule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "judge/attention.h"

namespace watchdog {
namespace {

/// Ranks causes: after an alert, only a worse cause is alerted again.
int gravity(AlertCause cause) {
  switch (cause) {
    case AlertCause::suspect:
    case AlertCause::quiet:
      return 0;
    case AlertCause::blocked:
    case AlertCause::quota:
    case AlertCause::idle:
      return 1;
    case AlertCause::stuck:
    case AlertCause::looping:
    case AlertCause::needs_input:
    case AlertCause::silent:
      return 2;
    case AlertCause::dead:
    case AlertCause::failed:
    case AlertCause::incomplete:
      break;
  }
  return 3;
}

/// A session that was quiet for ten minutes may be so for as long again: nobody is called for what
/// mostly passes.
constexpr Millis quiet_hold{600'000};
/// A loop may end by itself with the agent's next idea, and so may a suspicion.
constexpr Millis loop_hold{20'000};

Millis hold_of(AlertCause cause, const AlertRules& rules) {
  if (cause == AlertCause::quiet) return std::max(rules.hold, quiet_hold);
  const bool may_turn = cause == AlertCause::looping || cause == AlertCause::suspect;
  return may_turn ? std::max(rules.hold, loop_hold) : rules.hold;
}

bool is_wait(AlertCause cause) {
  return cause == AlertCause::blocked || cause == AlertCause::needs_input ||
         cause == AlertCause::quota || cause == AlertCause::idle;
}

/// While the session waits, only the kept word says for what.
AlertCause cause_of_wait(const AlertState& state) {
  for (const auto cause : {AlertCause::needs_input, AlertCause::quota, AlertCause::idle})
    if (state.word == name_of(cause)) return cause;
  return AlertCause::blocked;
}

/// Returns when the session's present wait becomes a trouble.
Instant ripe_at(const AlertState& state, const AlertRules& rules) {
  if (state.blocked_since == never) return never;
  const auto cause = cause_of_wait(state);
  return state.blocked_since + (cause == AlertCause::blocked ? rules.blocked_for
                                : cause == AlertCause::idle  ? rules.idle_for
                                                             : rules.needs_input_for);
}

bool may_pass(AlertCause cause) {
  return cause != AlertCause::failed && cause != AlertCause::incomplete;
}

Instant calm_again(const AlertState& state, const AlertRules& rules) {
  return state.changes.back() + rules.flap_window;
}

/// Returns when the present trouble is to be alerted.
Instant trouble_due(const AlertState& state, const AlertRules& rules) {
  if (!state.trouble || state.acknowledged) return never;
  if (state.alerted && gravity(*state.trouble) <= gravity(*state.alerted)) return never;
  const bool holds = may_pass(*state.trouble) && !is_wait(*state.trouble);
  const auto hold = holds ? hold_of(*state.trouble, rules) : Millis{0};
  return std::max(state.since + hold, state.snoozed_until);
}

AlertNotice notice(AlertState& state, AlertKind kind) {
  if (state.episode == never) state.episode = state.since;
  return {.kind = kind,
          .word = state.word,
          .reason = state.reason,
          .detail = state.detail,
          .at = state.at,
          .episode = state.episode};
}

AlertNotice trouble_notice(AlertState& state) {
  auto alerted = notice(state, AlertKind::alert);
  state.alerted = state.trouble;
  state.snoozed_until = {};
  return alerted;
}

AlertNotice recovery_notice(AlertState& state) {
  auto alerted = notice(state, AlertKind::recovery);
  state.episode = never;
  state.alerted.reset();
  state.acknowledged = false;
  return alerted;
}

AlertNotice flapping_notice(AlertState& state, const AlertRules& rules) {
  auto alerted = notice(state, AlertKind::alert);
  alerted.reason = "The trouble came and went " + std::to_string(state.changes.size()) +
                   " times within " + std::to_string(rules.flap_window.count() / 60'000) +
                   " min; now " + state.word + ": " + state.reason;
  state.flapping = true;
  state.alerted = state.trouble;
  return alerted;
}

/// Notes a change between calm and trouble; true if there were too many.
bool is_change_too_many(AlertState& state, Instant tick, const AlertRules& rules) {
  if (rules.flap_changes == 0) return false;
  std::erase_if(state.changes, [&](Instant at) { return at + rules.flap_window <= tick; });
  state.changes.push_back(tick);
  const auto kept = static_cast<std::size_t>(rules.flap_changes) + 1;
  if (state.changes.size() < kept) return false;
  state.changes.erase(state.changes.begin(),
                      state.changes.end() - static_cast<std::ptrdiff_t>(kept));
  return true;
}

std::optional<AlertNotice> turn(AlertState& state, const Condition& now, const AlertRules& rules) {
  const bool calm = now.kind == Condition::Kind::calm;
  const auto trouble = calm ? std::nullopt : std::optional(now.cause);
  if (trouble == state.trouble) return std::nullopt;
  const bool changed = calm || !state.trouble;
  // Turns come and go without trouble. So do questions, and each one is reported.
  const auto comes_and_goes = [](std::optional<AlertCause> cause) {
    return cause == AlertCause::idle || cause == AlertCause::needs_input;
  };
  const bool is_turn = comes_and_goes(trouble) || comes_and_goes(state.trouble);
  if (changed || gravity(*trouble) > gravity(*state.trouble)) {
    state.since = now.tick;
    state.at = now.at;
  }
  state.trouble = trouble;
  state.word = now.word;
  state.reason = now.reason;
  state.detail = now.detail;
  if (changed && !is_turn && is_change_too_many(state, now.tick, rules) && !state.flapping &&
      !state.acknowledged && state.snoozed_until <= now.tick) {
    return flapping_notice(state, rules);
  }
  return next_due_notice(state, now.tick, rules);
}

}  // namespace

bool AlertRules::wants(AlertCause cause) const noexcept {
  const bool is_kind_of_wait = cause == AlertCause::needs_input || cause == AlertCause::quota;
  if (is_kind_of_wait && wants(AlertCause::blocked)) return true;
  return std::ranges::find(on, cause) != on.end();
}

Condition condition_of(const Health& health, const AlertRules& rules, AlertCause wait) {
  Condition condition{.word = std::string(name_of(health.kind))};
  switch (health.kind) {
    case HealthKind::silent:
      // This is not a recovery, whatever was before.
      if (!rules.wants(AlertCause::silent)) return condition;
      condition.cause = AlertCause::silent;
      break;
    case HealthKind::suspect:
      if (!rules.wants(AlertCause::suspect)) return condition;  // likewise
      condition.cause = AlertCause::suspect;
      break;
    case HealthKind::slow:
      condition.kind = Condition::Kind::calm;
      if (health.pattern != Pattern::quiet) return condition;
      condition.cause = AlertCause::quiet;
      condition.word = name_of(AlertCause::quiet);
      break;
    case HealthKind::stuck:
      condition.cause = AlertCause::stuck;
      break;
    case HealthKind::looping:
      condition.cause = AlertCause::looping;
      break;
    case HealthKind::blocked:
      condition.cause = wait;
      condition.waits = true;
      condition.word = name_of(wait);
      break;
    case HealthKind::dead:
      condition.cause = AlertCause::dead;
      break;
    case HealthKind::idle:
      condition.kind = Condition::Kind::calm;
      if (!rules.wants(AlertCause::idle)) return condition;
      condition.cause = AlertCause::idle;
      break;
    default:
      condition.kind = Condition::Kind::calm;
      return condition;
  }
  if (rules.wants(condition.cause)) {
    condition.kind = Condition::Kind::trouble;
  } else if (health.kind == HealthKind::blocked) {
    condition.kind = Condition::Kind::calm;
  }
  return condition;
}

Condition condition_of(Lifecycle end, const AlertRules& rules) {
  Condition condition{.kind = Condition::Kind::calm, .word = std::string(name_of(end))};
  if (end != Lifecycle::failed && end != Lifecycle::incomplete) return condition;
  condition.cause = end == Lifecycle::failed ? AlertCause::failed : AlertCause::incomplete;
  if (rules.wants(condition.cause)) condition.kind = Condition::Kind::trouble;
  return condition;
}

bool AlertState::is_forgettable(Instant now, const AlertRules& rules) const {
  return !trouble && blocked_since == never && episode == never && snoozed_until <= now &&
         !flapping && (changes.empty() || changes.back() + rules.flap_window <= now);
}

std::optional<AlertNotice> fold(AlertState& state, const Condition& condition,
                                const AlertRules& rules) {
  if (condition.kind == Condition::Kind::unclear) return std::nullopt;
  const auto blocked_since = std::exchange(state.blocked_since, never);
  const bool waited = state.trouble && is_wait(*state.trouble);
  // A second wait after the first one is not a recovery: the session has not moved.
  if (condition.kind == Condition::Kind::calm && condition.waits && waited) return std::nullopt;
  if (condition.kind == Condition::Kind::trouble && is_wait(condition.cause)) {
    if (state.trouble == condition.cause) return std::nullopt;
    if (blocked_since != never && state.word == condition.word) {  // for something else now
      state.blocked_since = blocked_since;
      state.reason = condition.reason;
      state.detail = condition.detail;
      return std::nullopt;
    }
    // A wait is not a trouble until it lasts.
    auto calm = condition;
    calm.kind = Condition::Kind::calm;
    auto alerted = waited ? std::nullopt : turn(state, calm, rules);
    state.blocked_since = condition.tick;
    state.word = condition.word;
    state.reason = condition.reason;
    state.detail = condition.detail;
    state.at = condition.at;
    return alerted;
  }
  return turn(state, condition, rules);
}

Instant due_of(const AlertState& state, const AlertRules& rules) {
  const auto ripe = ripe_at(state, rules);
  if (state.flapping) return std::min(ripe, calm_again(state, rules));
  if (!state.trouble && state.episode != never) return state.since;
  return std::min(ripe, trouble_due(state, rules));
}

std::optional<AlertNotice> next_due_notice(AlertState& state, Instant now,
                                           const AlertRules& rules) {
  while (due_of(state, rules) <= now) {
    if (const auto ripe = ripe_at(state, rules); ripe <= now) {
      Condition waits{.kind = Condition::Kind::trouble,
                      .cause = cause_of_wait(state),
                      .word = state.word,
                      .reason = state.reason,
                      .detail = state.detail,
                      .tick = ripe,
                      .at = state.at};
      state.blocked_since = never;
      if (auto alerted = turn(state, waits, rules)) return alerted;
    } else if (state.flapping) {
      state.flapping = false;
      state.alerted.reset();  // the rest of it is alerted once more
      if (!state.trouble) state.reason = "Calm again: " + state.reason;
    } else if (!state.trouble && state.episode != never) {
      const bool was_turn = state.alerted == AlertCause::idle;
      auto recovered = recovery_notice(state);
      // Its person has taken the turn, and knows it.
      if (!was_turn) return recovered;
    } else {
      return trouble_notice(state);
    }
  }
  return std::nullopt;
}

void acknowledge(AlertState& state) {
  state.acknowledged = true;
  state.snoozed_until = {};
}

void snooze(AlertState& state, Instant until) {
  state.acknowledged = false;
  state.snoozed_until = until;
  state.alerted.reset();
}

Grouping group_alerts(const std::vector<AlertMade>& alerts, const std::vector<MessageMade>& recent,
                      std::size_t asked, Instant now, const AlertRules& rules) {
  Grouping grouping;
  std::vector<std::size_t> others;
  for (std::size_t at = 0; at < alerts.size(); ++at) {
    if (alerts[at].asks && asked + grouping.messages.size() < questions_alone_max) {
      grouping.messages.push_back({at});
    } else {
      others.push_back(at);
    }
  }
  std::vector<const MessageMade*> fresh;
  std::map<std::string, Instant> parent_free;
  for (const auto& message : recent) {
    const auto free = message.at + rules.group_window;
    if (free <= now) continue;
    fresh.push_back(&message);
    if (!message.parent.empty()) parent_free[message.parent] = free;
  }
  const auto messages_max = static_cast<std::size_t>(rules.messages_max);
  if (fresh.size() >= messages_max) {
    if (!others.empty())
      grouping.next = fresh[fresh.size() - messages_max]->at + rules.group_window;
    return grouping;
  }
  std::vector<std::vector<std::size_t>> messages;
  std::map<std::string, std::size_t> message_of;
  for (const auto at : others) {
    const auto& parent = alerts[at].parent;
    if (const auto waits = parent_free.find(parent); waits != parent_free.end()) {
      grouping.next = std::min(grouping.next, waits->second);
      continue;
    }
    const auto [known, is_new] = message_of.try_emplace(parent, messages.size());
    if (is_new || parent.empty()) messages.emplace_back();
    messages[parent.empty() ? messages.size() - 1 : known->second].push_back(at);
  }
  if (fresh.size() + messages.size() > messages_max) {
    std::vector<std::size_t> all;
    for (const auto& message : messages) all.insert(all.end(), message.begin(), message.end());
    std::ranges::sort(all);
    messages = {std::move(all)};
  }
  grouping.messages.insert(grouping.messages.end(), messages.begin(), messages.end());
  return grouping;
}

}  // namespace watchdog
