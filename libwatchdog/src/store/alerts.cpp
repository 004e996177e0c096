// Alerts in the store. In the transaction of a transition `alert_rule` gives the alerts; they
// are inserted with one delivery for each channel. `make_messages` groups alerts into messages,
// and `next_due_notice` does the same for what time alone makes due. The state of each session
// is a row, so a command on the file and the monitor see the same one. Of several monitors the one
// that judges a session makes and sends its alerts; it claims each message before it sends it.
#include "store/alerts.h"

#include <algorithm>
#include <limits>

#include "codec/fields.h"
#include "codec/json.h"
#include "codec/progress.h"
#include "facts/ids.h"
#include "judge/attention.h"
#include "judge/calm_alert.h"
#include "privacy/content.h"
#include "store/alert_acts.h"
#include "store/store_state.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

/// Sessions whose alerts became due, for each transaction.
constexpr int due_max = 1'000;
/// Of several monitors: sessions among which one looks for its own.
constexpr int others_due_max = 200;
/// Alerts that wait, among which a monitor looks for its own.
constexpr int waiting_max = 1'000;
/// Alerts of one message, and of those that wait, how many are looked at at once.
constexpr std::size_t alerts_max = 1'000;

constexpr std::string_view alert_columns =
    "a.id, s.name, s.spec, a.kind, a.word, a.reason, a.detail, a.at_ms, a.episode_tick, a.message, "
    "a.told_tick, a.acknowledged_by, a.acknowledged_ms, a.snoozed_until_ms";

std::int64_t ticks(Instant at) {
  return at.time_since_epoch().count();
}
Instant instant(std::int64_t ticks) {
  return Instant{Millis{ticks}};
}
WallTime wall_time(std::int64_t ms) {
  return WallTime{Millis{ms}};
}
void bind_time(Statement& statement, int at, Instant time) {
  time == never ? statement.bind_null(at) : statement.bind(at, ticks(time));
}
Instant time_in(const Statement& row, int column) {
  return row.is_null(column) ? never : instant(row.integer(column));
}
std::string_view name_or_none(const std::optional<AlertCause>& cause) {
  return cause ? name_of(*cause) : std::string_view{};
}

Alert alert_from(const Statement& row) {
  Alert alert{.id = row.integer(0), .session = row.text(1)};
  std::string unused;
  if (auto spec = session_spec_from_json(row.text(2), unused)) {
    alert.folder = description_of(*spec).directory;
    alert.agent = std::move(spec->agent);
    alert.parent = std::move(spec->parent);
    alert.task = std::move(spec->task);
  }
  alert.kind = named<AlertKind>(row.text(3)).value_or(AlertKind::alert);
  alert.word = row.text(4);
  alert.reason = row.text(5);
  alert.detail = row.text(6);
  alert.at = wall_time(row.integer(7));
  alert.episode = instant(row.integer(8));
  alert.message = row.text(9);
  if (!row.is_null(10)) alert.sent_with = instant(row.integer(10));
  alert.acknowledged_by = row.text(11);
  alert.acknowledged_at = wall_time(row.integer(12));
  if (!row.is_null(13)) alert.snoozed_until = wall_time(row.integer(13));
  return alert;
}

constexpr std::string_view state_columns =
    "trouble, word, reason, since_tick, at_ms, blocked_tick, episode_tick, told, acknowledged, "
    "snoozed_tick, changes, flapping";

/// In the column, the session's own text follows the reason.
constexpr char text_follows = '\x1f';

std::string with_detail(const AlertState& state) {
  return state.detail.empty() ? state.reason : state.reason + text_follows + state.detail;
}

AlertState state_from(const Statement& query) {
  AlertState state{.trouble = named<AlertCause>(query.text(0)),
                   .word = query.text(1),
                   .reason = query.text(2),
                   .since = instant(query.integer(3)),
                   .at = wall_time(query.integer(4)),
                   .blocked_since = time_in(query, 5),
                   .episode = time_in(query, 6),
                   .alerted = named<AlertCause>(query.text(7)),
                   .acknowledged = query.integer(8) == 1,
                   .snoozed_until = instant(query.integer(9)),
                   .flapping = query.integer(11) == 1};
  if (const auto end = state.reason.find(text_follows); end != state.reason.npos) {
    state.detail = state.reason.substr(end + 1);
    state.reason.resize(end);
  }
  if (const auto changes = parse_json(query.text(10)); changes && changes->is_array()) {
    for (const auto& at : *changes)
      if (at.is_number_integer()) state.changes.push_back(instant(at.get<std::int64_t>()));
  }
  if (state.changes.empty()) state.flapping = false;
  return state;
}

}  // namespace

std::optional<AlertState> Store::State::Alerts::state_of(SessionKey session) {
  if (const auto known = fetched_.find(session); known != fetched_.end()) return known->second;
  auto& query =
      log_.sql("SELECT " + std::string(state_columns) + " FROM alert_states WHERE session = ?");
  const ResetLater later(query);
  query.bind(1, session);
  return query.step() ? std::optional(state_from(query)) : std::nullopt;
}

void Store::State::Alerts::fetch_states(const Conclusions& verdicts) {
  if (log_.server == nullptr) return;
  for (const auto& transition : verdicts.transitions) fetched_.try_emplace(transition.session);
  for (const auto* judged : verdicts.snapshots) fetched_.try_emplace(judged->session);
  std::vector<std::int64_t> sessions;
  for (const auto& [session, none] : fetched_) sessions.push_back(session);
  auto& query = log_.sql("SELECT " + std::string(state_columns) +
                         ", session FROM alert_states WHERE session = ANY(?)");
  const ResetLater later(query);
  query.bind_numbers(1, sessions);
  while (query.step()) fetched_[query.integer(12)] = state_from(query);
}

void Store::State::Alerts::put_state(SessionKey session, const AlertState& state, Instant due) {
  JsonWriter changes;
  changes.open_array();
  for (const auto at : state.changes) changes.value(ticks(at));
  changes.close_array();
  auto& row = log_.sql(
      "INSERT INTO alert_states (session, due_tick, trouble, word, reason, since_tick, "
      "at_ms, blocked_tick, episode_tick, told, acknowledged, snoozed_tick, changes, flapping) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session) DO UPDATE SET "
      "due_tick = excluded.due_tick, trouble = excluded.trouble, word = excluded.word, reason = "
      "excluded.reason, since_tick = excluded.since_tick, at_ms = excluded.at_ms, blocked_tick = "
      "excluded.blocked_tick, episode_tick = excluded.episode_tick, told = excluded.told, "
      "acknowledged = excluded.acknowledged, snoozed_tick = excluded.snoozed_tick, changes = "
      "excluded.changes, flapping = excluded.flapping");
  row.bind(1, session);
  bind_time(row, 2, due);
  const auto reason = redact(with_detail(state));
  row.bind(3, name_or_none(state.trouble), true).bind(4, state.word).bind(5, reason);
  row.bind(6, ticks(state.since)).bind(7, state.at.time_since_epoch().count());
  bind_time(row, 8, state.blocked_since);
  bind_time(row, 9, state.episode);
  row.bind(10, name_or_none(state.alerted), true).bind(11, state.acknowledged ? 1 : 0);
  row.bind(12, ticks(state.snoozed_until))
      .bind(13, changes.text())
      .bind(14, state.flapping ? 1 : 0);
  row.run();
  if (const auto known = fetched_.find(session); known != fetched_.end()) known->second = state;
}

void Store::State::Alerts::keep_state(SessionKey session, const AlertState& state, Instant at,
                                      const AlertRules& rules) {
  if (!state.is_forgettable(at, rules)) return put_state(session, state, due_of(state, rules));
  auto& forget = log_.sql("DELETE FROM alert_states WHERE session = ?");
  forget.bind(1, session);
  forget.run();
  if (const auto known = fetched_.find(session); known != fetched_.end()) known->second.reset();
}

Instant Store::State::Alerts::next_due() {
  auto& query = log_.sql(
      "SELECT due_tick, session FROM alert_states WHERE due_tick IS NOT NULL ORDER BY due_tick "
      "LIMIT ?");
  const ResetLater later(query);
  query.bind(1, log_.server == nullptr ? 1 : others_due_max);
  while (query.step()) {
    if (owns(query.integer(1))) return instant(query.integer(0));
  }
  return never;
}

void Store::State::Alerts::notice(const Conclusions& verdicts) {
  const auto& rules = *verdicts.alerts;
  made_.clear();
  struct Forgotten {
    decltype(fetched_)& states;
    ~Forgotten() { states.clear(); }
  } const later{fetched_};
  fetch_states(verdicts);
  const auto is_child = [&](SessionKey session) {
    auto& query = log_.sql("SELECT 1 FROM sessions WHERE id = ? AND parent <> ''");
    const ResetLater reset(query);
    query.bind(1, session);
    return query.step();
  };
  for (const auto& transition : verdicts.transitions) {
    auto condition = condition_of(transition.health, rules, transition.wait);
    const auto judged = std::ranges::find(verdicts.snapshots, transition.session, &Case::session);
    condition.at = transition.at;
    if (judged != verdicts.snapshots.end()) {
      be_calm_in_family(condition, (*judged)->history);
      be_calm_in_recording(condition, (*judged)->history, log_.wall);
    }
    // Its parent gives a child the next task.
    const bool is_turn = condition.cause == AlertCause::idle;
    if (is_turn && condition.kind == Condition::Kind::trouble && is_child(transition.session))
      condition.kind = Condition::Kind::calm;
    condition.reason = transition.public_reason.sentence;
    condition.detail = transition.public_reason.text;
    condition.tick = transition.tick;
    notice(transition.session, condition, rules);
  }
  for (const auto* judged : verdicts.snapshots) {
    notice_wait(*judged, rules);
    notice_end(*judged, rules);
  }
  make_messages(rules);
}

/// A change from one wait to another is not a transition: the session is blocked all the time.
void Store::State::Alerts::notice_wait(const Case& judged, const AlertRules& rules) {
  const auto& history = judged.history;
  if (history.lifecycle != Lifecycle::waiting || judged.health.kind != HealthKind::blocked) return;
  auto condition = condition_of(judged.health, rules, cause_of_wait(history));
  be_calm_in_family(condition, history);
  auto reason = public_reason_of(judged.health, history, *judged.policy);
  condition.reason = std::move(reason.sentence);
  condition.detail = std::move(reason.text);
  condition.tick = history.notes->wait_since;
  condition.at = standing_since(judged, history.tick, history.at);
  be_calm_in_recording(condition, history, log_.wall);
  notice(judged.session, condition, rules);
}

void Store::State::Alerts::notice_end(const Case& judged, const AlertRules& rules) {
  const auto& history = judged.history;
  Condition condition{.tick = history.tick, .at = history.at};
  if (!is_end(history.lifecycle)) {
    // An end is not a transition, nor is its revocation.
    const auto state = state_of(judged.session);
    if (!state ||
        (state->trouble != AlertCause::failed && state->trouble != AlertCause::incomplete))
      return;
    condition.kind = Condition::Kind::calm;
    condition.word = name_of(judged.health.kind);
    condition.reason = "The session was taken up again";
    return notice(judged.session, condition, rules);
  }
  const auto end = condition_of(history.lifecycle, rules);
  condition.kind = end.kind;
  condition.cause = end.cause;
  condition.word = end.word;
  if (const auto& outcome = history.notes->outcome) {
    // The error and words of its own are content, which an alert has only where it may.
    auto without_error = *outcome;
    without_error.error.clear();
    condition.detail = outcome->error;
    if (!outcome->reason.empty() &&
        std::ranges::find(reasons::all, outcome->reason) == std::end(reasons::all)) {
      condition.detail = outcome->reason + (outcome->error.empty() ? "" : ": " + outcome->error);
      without_error.reason = "for a reason that it named";
      without_error.subject.clear();
    }
    condition.reason = end_in_words(without_error, history.notes->wasted_calls);
    condition.at = history.notes->outcome_at;
    // It was not awaited for as long as ended sessions are kept.
    if (outcome->reason == reasons::abandoned) condition.kind = Condition::Kind::calm;
    be_calm_in_recording(condition, history, log_.wall);
  }
  notice(judged.session, condition, rules);
}

void Store::State::Alerts::notice(SessionKey session, const Condition& condition,
                                  const AlertRules& rules) {
  if (condition.kind == Condition::Kind::unclear) return;
  auto state = state_of(session);
  if (!state) {
    if (condition.kind == Condition::Kind::calm) return;
    state.emplace();
  }
  while (const auto due = watchdog::next_due_notice(*state, condition.tick, rules))
    put(session, *due, rules);
  if (const auto news = fold(*state, condition, rules)) put(session, *news, rules);
  keep_state(session, *state, condition.tick, rules);
}

void Store::State::Alerts::notice_due(Instant until, const AlertRules& rules) {
  auto& query =
      log_.sql("SELECT session FROM alert_states WHERE due_tick <= ? ORDER BY due_tick LIMIT ?");
  query.bind(1, ticks(until)).bind(2, due_max);
  std::vector<SessionKey> sessions;
  while (query.step()) sessions.push_back(query.integer(0));
  query.reset();
  if (log_.server != nullptr && !log_.monitor_name.empty()) {
    const auto shards = valid_shards();
    std::erase_if(sessions, [&](SessionKey key) { return !shards.contains(shard_of(key)); });
  }
  made_.clear();
  for (const auto session : sessions) {
    if (session == observer_key) continue;  // for make_messages
    auto state = state_of(session);
    if (!state) continue;
    while (const auto due = watchdog::next_due_notice(*state, until, rules))
      put(session, *due, rules);
    keep_state(session, *state, until, rules);
  }
  make_messages(rules);
}

void Store::State::Alerts::put(SessionKey session, const AlertNotice& notice,
                               const AlertRules& rules) {
  auto& alert = log_.sql(
      "INSERT INTO alerts (session, kind, word, reason, detail, at_ms, episode_tick) VALUES (?, "
      "?, ?, ?, ?, ?, ?) RETURNING id");
  alert.bind(1, session).bind(2, name_of(notice.kind)).bind(3, notice.word);
  const auto reason = redact(notice.reason);
  const auto detail = redact(notice.detail);
  alert.bind(4, reason).bind(5, detail, true);
  alert.bind(6, notice.at.time_since_epoch().count()).bind(7, ticks(notice.episode));
  alert.step();
  const auto id = alert.integer(0);
  alert.reset();
  made_.push_back(id);
  for (const auto& channel : rules.channels) {
    auto& delivery = log_.sql(
        "INSERT INTO deliveries (channel, alert, state, attempts) VALUES (?, ?, 'pending', 0)");
    delivery.bind(1, channel).bind(2, id);
    delivery.run();
  }
}

/// The newest ones that report a trouble, without questions, the oldest of them first. The message
/// that a trouble is over must not delay the next trouble.
std::vector<MessageMade> Store::State::Alerts::messages_after(Instant then, int count_max) {
  auto& query = log_.sql(
      "SELECT told_tick, message, parent FROM alerts WHERE told_tick > ? AND (told_tick, "
      "message) < (?, ?) AND kind = 'alert' AND word <> 'needs_input' ORDER BY told_tick "
      "DESC, message DESC LIMIT 1");
  const ResetLater later(query);
  std::vector<MessageMade> messages;
  std::int64_t tick = std::numeric_limits<std::int64_t>::max();
  std::string key;
  // From message to message, however many alerts are in each.
  while (static_cast<int>(messages.size()) < count_max) {
    query.reset().bind(1, ticks(then)).bind(2, tick).bind(3, key);
    if (!query.step()) break;
    tick = query.integer(0);
    key = query.text(1);
    messages.push_back({.at = instant(tick), .parent = query.text(2)});
  }
  std::ranges::reverse(messages);
  return messages;
}

std::size_t Store::State::Alerts::questions_after(Instant then) {
  auto& query = log_.sql(
      "SELECT count(DISTINCT message) FROM alerts WHERE told_tick > ? AND kind = 'alert' AND word "
      "= 'needs_input'");
  const ResetLater later(query);
  query.bind(1, ticks(then));
  return query.step() ? static_cast<std::size_t>(query.integer(0)) : 0;
}

void Store::State::Alerts::send_together(const std::vector<std::int64_t>& ids,
                                         const std::string& parent, Instant at) {
  std::string message;
  auto& send = log_.sql("UPDATE alerts SET message = ?, told_tick = ?, parent = ? WHERE id = ?");
  for (std::size_t index = 0; index < ids.size(); ++index) {
    if (index % alerts_max == 0) message = new_ulid(log_.options.clock->wall());
    send.reset().bind(1, message).bind(2, ticks(at)).bind(3, parent, true).bind(4, ids[index]);
    send.run();
  }
}

/// Of the new alerts, and, when it is their time, of those that wait.
void Store::State::Alerts::make_messages(const AlertRules& rules) {
  const Instant at =
      std::max(log_.last_tick, Instant{log_.options.clock->since_boot() + log_.offset});
  auto& due =
      log_.sql("SELECT due_tick FROM alert_states WHERE session = ? AND due_tick IS NOT NULL");
  due.bind(1, observer_key);
  const Instant waits_until = due.step() ? instant(due.integer(0)) : never;
  due.reset();
  const bool all = waits_until <= at;
  if (!all && made_.empty()) return;
  // The end of a question must not come after the next one, so it goes out at once as well.
  const std::string what =
      "SELECT a.id, s.parent, a.word = 'needs_input' AND a.kind = 'alert' OR a.kind = 'recovery' "
      "AND EXISTS (SELECT 1 FROM alerts o WHERE o.session = a.session AND o.episode_tick = "
      "a.episode_tick AND o.kind = 'alert' AND o.word = 'needs_input') FROM alerts a JOIN sessions "
      "s ON s.id = a.session WHERE ";
  auto& waiting = log_.sql(
      what + (all ? "a.told_tick IS NULL ORDER BY a.id LIMIT ?" : "a.id >= ? ORDER BY a.id"));
  waiting.bind(1, all ? static_cast<std::int64_t>(alerts_max) : made_.front());
  std::vector<std::int64_t> ids;
  std::vector<AlertMade> alerts;
  while (waiting.step()) {
    ids.push_back(waiting.integer(0));
    alerts.push_back({.parent = waiting.text(1), .asks = waiting.integer(2) == 1});
  }
  waiting.reset();
  made_.clear();
  const auto then = at - rules.group_window;
  const bool asks = std::ranges::any_of(alerts, &AlertMade::asks);
  const auto grouping = group_alerts(alerts, messages_after(then, rules.messages_max),
                                     asks ? questions_after(then) : 0, at, rules);
  for (const auto& group : grouping.messages) {
    std::vector<std::int64_t> together;
    auto parent = alerts[group.front()].parent;
    for (const auto index : group) {
      together.push_back(ids[index]);
      if (alerts[index].parent != parent) parent.clear();
    }
    send_together(together, parent, at);
  }
  has_new_messages = has_new_messages || !grouping.messages.empty();
  auto next = all ? grouping.next : std::min(waits_until, grouping.next);
  if (all && ids.size() == alerts_max && !grouping.messages.empty()) next = at;  // and the rest
  if (next != waits_until) put_state(observer_key, {}, next);
}

void Store::State::Alerts::give_to_new_channels(const AlertRules& rules) {
  auto& open = log_.sql(
      "SELECT MAX(a.id) FROM alert_states t JOIN alerts a ON a.session = t.session AND "
      "a.episode_tick = t.episode_tick WHERE t.told IS NOT NULL AND t.acknowledged = 0 AND a.kind "
      "= "
      "'alert' AND a.at_ms > ? GROUP BY a.session ORDER BY 1 LIMIT ?");
  const auto since = log_.options.clock->wall() - end_fresh_for;
  open.bind(1, since.time_since_epoch().count()).bind(2, static_cast<std::int64_t>(alerts_max));
  std::vector<std::int64_t> alerts;
  while (open.step()) alerts.push_back(open.integer(0));
  open.reset();
  for (const auto& channel : rules.channels) {
    for (const auto alert : alerts) {
      auto& give = log_.sql(
          "INSERT INTO deliveries (channel, alert, state, attempts) VALUES (?, ?, 'pending', 0) ON "
          "CONFLICT DO NOTHING");
      give.bind(1, channel).bind(2, alert);
      give.run();
    }
  }
  has_new_messages = has_new_messages || !alerts.empty();
}

Result<void> AlertActs::give_to_new_channels(const AlertRules& rules) {
  if (rules.channels.empty()) return {};
  return state_.in_turn<void>([&]() -> Result<void> {
    state_.stamp();
    state_.alerts.give_to_new_channels(rules);
    return {};
  });
}

Result<Instant> AlertActs::next_due(const AlertRules& rules) {
  const auto due = state_.reader.state_->guarded<Instant>(
      [&]() -> Result<Instant> { return state_.alerts.next_due(); });
  if (!due || *due > store_.now()) return due;
  return state_.in_turn<Instant>([&]() -> Result<Instant> {
    state_.stamp();
    state_.alerts.notice_due(state_.now, rules);
    return state_.alerts.next_due();
  });
}

bool Store::State::Alerts::owns(SessionKey session) const noexcept {
  return log_.server == nullptr ||
         log_.held.holds(session == observer_key ? upkeep_shard : shard_of(session));
}

std::set<int> Store::State::Alerts::valid_shards() {
  auto& query = log_.sql("SELECT shard, epoch FROM leases WHERE owner = ?");
  const ResetLater later(query);
  query.bind(1, std::string_view(log_.monitor_name));
  std::set<int> shards;
  while (query.step()) {
    const auto shard = static_cast<int>(query.integer(0));
    if (query.integer(1) == log_.held.epoch_of(shard)) shards.insert(shard);
  }
  return shards;
}

/// In order, those that no other monitor sends now. The claims of a monitor that is gone are void.
std::vector<Store::State::Alerts::Waiting> Store::State::Alerts::unsent(std::string_view channel) {
  auto& query = log_.sql(
      "SELECT d.alert, a.session, a.message FROM deliveries d JOIN alerts a ON a.id = d.alert "
      "WHERE d.channel = ?1 AND d.state = 'pending' AND a.told_tick IS NOT NULL AND (d.claimed_by "
      "IS NULL OR d.claimed_by = ?2 OR d.claimed_until_ms <= ?3 OR NOT EXISTS (SELECT 1 FROM "
      "monitors m WHERE m.name = d.claimed_by AND m.until_ms > ?3)) ORDER BY d.alert LIMIT ?4");
  const ResetLater later(query);
  query.bind(1, channel).bind(2, std::string_view(log_.monitor_name));
  query.bind(3, log_.turn_clock.count()).bind(4, waiting_max);
  std::vector<Waiting> all;
  while (query.step())
    all.push_back(
        {.alert = query.integer(0), .session = query.integer(1), .message = query.text(2)});
  return all;
}

/// Without a turn: the clock is of the latest one, so a claim may be over a little later.
bool Store::State::Alerts::has_own_message(std::string_view channel) {
  const auto all = unsent(channel);
  return std::ranges::any_of(all, [&](const Waiting& one) { return owns(one.session); });
}

bool Store::State::Alerts::claim_all(std::string_view channel, std::span<const std::int64_t> ids,
                                     Millis time) {
  auto& take = log_.sql(
      "UPDATE deliveries SET claimed_by = ?1, claimed_until_ms = ?2 WHERE channel = ?3 AND alert = "
      "ANY(?4) AND state = 'pending' AND (claimed_by IS NULL OR claimed_by = ?1 OR "
      "claimed_until_ms <= ?5 OR NOT EXISTS (SELECT 1 FROM monitors m WHERE m.name = claimed_by "
      "AND m.until_ms > ?5)) RETURNING alert");
  const ResetLater later(take);
  take.bind(1, std::string_view(log_.monitor_name)).bind(2, (log_.turn_clock + time).count());
  take.bind(3, channel).bind_numbers(4, ids).bind(5, log_.turn_clock.count());
  std::size_t claimed = 0;
  while (take.step()) ++claimed;
  return claimed == ids.size();
}

/// A message is sent as a whole, by the first monitor that judges one of its sessions. The others
/// find it claimed.
std::vector<Alert> Store::State::Alerts::claim(std::string_view channel, bool single, Millis time) {
  const auto shards = valid_shards();
  const auto all = unsent(channel);
  const auto own = std::ranges::find_if(
      all, [&](const Waiting& one) { return shards.contains(shard_of(one.session)); });
  if (own == all.end()) return {};
  std::vector<std::int64_t> ids;
  for (const auto& one : all) {
    if (one.alert == own->alert || (!single && one.message == own->message))
      ids.push_back(one.alert);
  }
  if (!claim_all(channel, ids, time)) return {};
  auto& rows = log_.sql("SELECT " + std::string(alert_columns) +
                        " FROM alerts a JOIN sessions s ON s.id = a.session WHERE a.id = ANY(?) "
                        "ORDER BY a.id");
  const ResetLater later(rows);
  rows.bind_numbers(1, ids);
  std::vector<Alert> found;
  while (rows.step()) found.push_back(alert_from(rows));
  return found;
}

bool AlertActs::drain_new_messages() {
  return std::exchange(state_.alerts.has_new_messages, false);
}

std::vector<std::pair<SessionKey, bool>> AlertActs::drain_known() {
  return std::exchange(state_.alerts.known, {});
}

Result<void> AlertActs::note(const Attempt& attempt) {
  const auto done = state_.in_turn<bool>([&]() -> Result<bool> {
    for (const auto id : attempt.alerts) {
      // Held deliveries are not tried again; sent ones stay sent.
      auto& update = state_.sql(
          "UPDATE deliveries SET attempts = attempts + 1, error = ?1, sent_ms = CASE WHEN ?2 = "
          "'sent' THEN CAST(?3 AS BIGINT) END, state = CASE WHEN ?2 = 'pending' THEN state ELSE ?2 "
          "END WHERE "
          "channel = ?4 AND alert = ?5 AND state <> 'sent'");
      update.bind(1, attempt.error, true).bind(2, name_of(attempt.state));
      update.bind(3, state_.options.clock->wall().time_since_epoch().count());
      update.bind(4, attempt.channel).bind(5, id);
      update.run();
    }
    return true;
  });
  return done ? Result<void>{} : done.error();
}

template <class Change>
Result<Alert> Store::State::Alerts::change(std::int64_t id, std::string_view unanswered_of,
                                           Change&& change) {
  return log_.in_turn<Alert>([&]() -> Result<Alert> {
    log_.stamp();
    auto found = log_.reader.alerts({.after = id + 1, .limit = 1});
    if (!found) return found.error();
    if (found->empty() || found->front().id != id) {
      return Error{ErrorCode::not_found, "there is no alert " + std::to_string(id), "alertId"};
    }
    if (found->front().kind == AlertKind::recovery) {
      return Error{ErrorCode::conflict,
                   "alert " + std::to_string(id) + " says that something is over", "alertId"};
    }
    const auto& alert = found->front();
    const bool answered = !alert.acknowledged_by.empty() || alert.snoozed_until.has_value();
    if (!unanswered_of.empty() && (answered || alert.session != unanswered_of)) {
      return Error{ErrorCode::conflict, "alert " + std::to_string(id) + " was answered before",
                   "alertId"};
    }
    const auto session = log_.reader.session(alert.session);
    if (!session) return session.error();
    auto state = state_of(session->key).value_or(AlertState{});
    change(found->front(), state);
    // The judge has the rules and finds the consequences at its next look.
    put_state(session->key, state, log_.now);
    known.emplace_back(session->key, state.acknowledged);
    auto& hold =
        log_.sql("UPDATE deliveries SET state = 'held' WHERE alert = ? AND state = 'pending'");
    hold.bind(1, id);
    hold.run();
    has_new_messages = true;  // there is less to send
    found = log_.reader.alerts({.after = id + 1, .limit = 1});
    if (!found) return found.error();
    return std::move(found->front());
  });
}

Result<Alert> AlertActs::acknowledge(std::int64_t id, const std::string& by,
                                     std::string_view unanswered_of) {
  return state_.alerts.change(id, unanswered_of, [&](const Alert& alert, AlertState& state) {
    if (state.episode == alert.episode) watchdog::acknowledge(state);
    auto& update = state_.sql(
        "UPDATE alerts SET acknowledged_by = ?, acknowledged_ms = ? WHERE id = ? AND "
        "acknowledged_by IS NULL");
    update.bind(1, by).bind(2, state_.wall.time_since_epoch().count()).bind(3, id);
    update.run();
  });
}

Result<Alert> AlertActs::snooze(std::int64_t id, Millis time, std::string_view unanswered_of) {
  return state_.alerts.change(id, unanswered_of, [&](const Alert&, AlertState& state) {
    watchdog::snooze(state, state_.now + time);
    auto& update = state_.sql("UPDATE alerts SET snoozed_until_ms = ? WHERE id = ?");
    update.bind(1, (state_.wall + time).time_since_epoch().count()).bind(2, id);
    update.run();
  });
}

Result<std::vector<Alert>> StoreReader::alerts(const AlertFilter& filter) {
  return state_->guarded<std::vector<Alert>>([&]() -> Result<std::vector<Alert>> {
    const Transaction one_view(*state_->database, Transaction::Kind::read);
    std::string sql = "SELECT " + std::string(alert_columns) +
                      " FROM alerts a JOIN sessions s ON s.id = a.session WHERE a.id < ?";
    if (!filter.session.empty()) sql += " AND s.name = ?";
    if (filter.state) sql += " AND a.id IN (SELECT alert FROM deliveries WHERE state = ?)";
    auto& query = state_->prepared(sql + " ORDER BY a.id DESC LIMIT ?");
    const ResetLater later(query);
    int at = 0;
    query.bind(++at, filter.after > 0 ? filter.after : std::numeric_limits<std::int64_t>::max());
    if (!filter.session.empty()) query.bind(++at, filter.session);
    if (filter.state) query.bind(++at, name_of(*filter.state));
    query.bind(++at, filter.limit);
    std::vector<Alert> alerts;
    while (query.step()) alerts.push_back(alert_from(query));
    auto& deliveries = state_->prepared(
        "SELECT channel, state, attempts, error FROM deliveries WHERE alert = ? ORDER BY channel");
    const ResetLater deliveries_later(deliveries);
    for (auto& alert : alerts) {
      deliveries.reset().bind(1, alert.id);
      while (deliveries.step()) {
        alert.deliveries.push_back(
            {.channel = deliveries.text(0),
             .state = named<DeliveryState>(deliveries.text(1)).value_or(DeliveryState::pending),
             .attempts = deliveries.integer(2),
             .error = deliveries.text(3)});
      }
    }
    return alerts;
  });
}

Result<std::vector<Alert>> StoreReader::next_message(std::string_view channel, bool single) {
  return state_->guarded<std::vector<Alert>>([&]() -> Result<std::vector<Alert>> {
    const Transaction one_view(*state_->database, Transaction::Kind::read);
    static const std::string pending =
        "SELECT " + std::string(alert_columns) +
        " FROM deliveries d JOIN alerts a ON a.id = d.alert JOIN sessions s ON s.id = a.session "
        "WHERE d.channel = ? AND d.state = 'pending' AND ";
    auto& first = state_->prepared(pending + "a.told_tick IS NOT NULL ORDER BY d.alert LIMIT 1");
    const ResetLater later(first);
    first.bind(1, channel);
    std::vector<Alert> alerts;
    if (first.step()) alerts.push_back(alert_from(first));
    if (alerts.empty() || single) return alerts;
    auto& rest = state_->prepared(pending + "a.message = ? AND d.alert > ? ORDER BY d.alert");
    const ResetLater rest_later(rest);
    rest.bind(1, channel).bind(2, alerts.front().message).bind(3, alerts.front().id);
    while (rest.step()) alerts.push_back(alert_from(rest));
    return alerts;
  });
}

}  // namespace watchdog
