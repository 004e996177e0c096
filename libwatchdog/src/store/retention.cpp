// Keeps the file small in bounded pieces. A piece does the first of these steps that has work:
//  1. It drops ended sessions that are old, and further ones while the file is too large.
//  2. It drops the oldest events of running sessions if that is not enough.
//  3. It drops old alerts.
//  4. It merges rows of heartbeats.
// The audit log and free pages come last. `keep_floors` stores the highest numbers, so none is used
// again.
//
// A piece remembers for the next one which sessions are old and how far merging came. That may be
// outdated, and a transaction may roll back. So a query looks at each session again in the
// transaction that drops it: a wrong memory drops too little and never too much.
#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_set>
#include <utility>

#include "codec/facts.h"
#include "codec/json.h"
#include "store/store_state.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

/// Events handled in one piece: some milliseconds of the writers' queue.
constexpr int trim_events = 1'000;
/// And on a server for about this long.
constexpr std::chrono::milliseconds piece_max{100};
/// The cost of a session besides its events, in events.
constexpr int session_cost = 10;
/// Gives some pages back to the filesystem.
constexpr int give_back_pages = 500;
constexpr const char* give_back = "PRAGMA incremental_vacuum(500)";
/// An alert that could not be sent for this long no longer keeps its session in a file that is too
/// large.
constexpr Millis untold_max{3'600'000};

bool may_merge(const Event& event) {
  return event.report.kind == ReportKind::heartbeat && event.report.event_id.empty() &&
         !event.report.ts_ms && !event.report.expect_quiet;
}

/// True if the newest rise of a counter is still known to be where it was.
bool keeps_rise(const Heartbeats& row, const Heartbeats& next) {
  return (row.counters.empty() && next.counters.empty()) || rises(row.counters, next.counters);
}

/// True if the gaps in and between the rows move no bound, wherever in a merged row they are.
bool regular(const Heartbeats& row, const Heartbeats& next, Millis interval) {
  return row.source == Source::loop ||
         2 * std::max({row.max_gap, next.max_gap, next.first - row.last}) < 3 * interval;
}

}  // namespace

/// Deletions may take the newest event with them: what comes next must still be above it.
void Store::State::keep_floors() {
  auto& floor =
      sql("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET "
          "value = CASE WHEN meta.value < excluded.value THEN excluded.value ELSE meta.value END");
  floor.bind(1, std::string_view("next_seq")).bind(2, next_seq);
  floor.run();
  floor.bind(1, std::string_view("last_tick_ms")).bind(2, last_tick.time_since_epoch().count());
  floor.run();
  floor.bind(1, std::string_view("last_transition")).bind(2, newest_transition());
  floor.run();
}

/// Deletes at most `events_left` of the session's events, and once they are gone the session
/// itself.
void Store::State::Retainer::drop_session(SessionKey session, Instant tick, int& events_left) {
  changed_ = true;
  if (log_.server != nullptr) {  // its events go with their day, see drop_old_part
    drop_session_rows(session);
    events_left -= session_cost;
    return;
  }
  auto& previous = log_.sql("SELECT prev FROM events WHERE seq = ?");
  auto& drop = log_.sql("DELETE FROM events WHERE seq = ?");
  Seq seq = log_.reader.state_->head_of(session);
  for (; events_left > 0 && seq != 0; --events_left) {
    previous.reset().bind(1, seq);
    const Seq next = previous.step() ? previous.integer(0) : 0;
    previous.reset();
    drop.bind(1, seq);
    drop.run();
    seq = next;
  }
  dropping_.reset();
  if (seq != 0) {
    dropping_ = Over{.session = session, .tick = tick, .head = seq};
    auto& shorten = log_.sql("UPDATE heads SET seq = ? WHERE session = ?");
    shorten.bind(1, seq).bind(2, session);
    shorten.run();
    return;
  }
  drop_session_rows(session);
  events_left -= session_cost;
}

/// No index leads from a session to its labels, but its properties name them.
void Store::State::Retainer::drop_labels(SessionKey session) {
  auto& query = log_.sql("SELECT spec FROM sessions WHERE id = ?");
  const ResetLater later(query);
  query.bind(1, session);
  if (!query.step()) return;
  std::string unused;
  const auto spec = session_spec_from_json(query.text(0), unused);
  query.reset();
  if (!spec) {
    auto& all = log_.sql("DELETE FROM labels WHERE session = ?");
    all.bind(1, session);
    all.run();
    return;
  }
  for (const auto& [key, value] : spec->labels) {
    auto& drop = log_.sql("DELETE FROM labels WHERE key = ? AND value = ? AND session = ?");
    drop.bind(1, key).bind(2, value).bind(3, session);
    drop.run();
  }
}

/// All that is kept of a session but its events.
void Store::State::Retainer::drop_session_rows(SessionKey session) {
  dropped.push_back(session);
  merged_.erase(session);
  drop_labels(session);
  for (const std::string_view text :
       {"DELETE FROM blocks WHERE session = ?", "DELETE FROM transitions WHERE session = ?",
        "DELETE FROM snapshots WHERE session = ?",
        "DELETE FROM deliveries WHERE alert IN (SELECT id FROM alerts WHERE session = ?)",
        "DELETE FROM alerts WHERE session = ?", "DELETE FROM alert_states WHERE session = ?",
        "DELETE FROM heads WHERE session = ?", "DELETE FROM sessions WHERE id = ?"}) {
    auto& statement = log_.sql(text);
    statement.bind(1, session);
    statement.run();
  }
}

/// A server has no limit of size: its disk is its operator's, and parts go by their age.
std::int64_t Store::State::Retainer::bytes_used() {
  if (log_.server != nullptr) return 0;
  return (log_.database->pragma("page_count") - log_.database->pragma("freelist_count")) *
         log_.database->pragma("page_size");
}

bool Store::State::Retainer::may_age() const {
  const auto difference = log_.wall.time_since_epoch() - log_.now.time_since_epoch();
  return std::chrono::abs(difference) <= clocks_differ_max && log_.now - leap > clocks_differ_max;
}

/// Finds the sessions that are over. By their newest event, because the wall clock that stamped
/// their end may have been wrong; an abandoned one is as old as what it said last. Dead sessions
/// count as ended.
void Store::State::Retainer::find_over(const Retention& retention) {
  over_.clear();
  next_over_ = 0;
  auto& query = log_.sql(
      "SELECT id, tick, coalesce(head, 0) FROM (SELECT s.id, CASE WHEN s.outcome_reason = ?2 THEN "
      "(SELECT tick_ms "
      "FROM events WHERE seq "
      "= e.prev) ELSE e.tick_ms END AS tick, h.seq AS head FROM (SELECT id FROM sessions WHERE "
      "ended_ms IS NOT "
      "NULL UNION ALL SELECT id FROM sessions WHERE health = 'dead' AND ended_ms IS NULL) AS o "
      "JOIN sessions s ON s.id = o.id LEFT JOIN heads h ON h.session = s.id LEFT JOIN events e "
      "ON e.seq = h.seq WHERE s.ended_ms IS NOT NULL OR h.seq <= ?1) AS found ORDER BY "
      "coalesce(tick, 0), head");
  const ResetLater later(query);
  query.bind(1, retention.folded_through).bind(2, reasons::abandoned);
  while (query.step()) {
    over_.push_back({.session = query.integer(0),
                     .tick = Instant{Millis{query.integer(1)}},
                     .head = query.integer(2)});
  }
  searched_ = true;
}

/// False if the session was continued since the search, or if somebody waits for its alert.
bool Store::State::Retainer::is_still_over(const Over& over, bool is_large,
                                           const Retention& retention) {
  const auto untold_for = is_large ? untold_max : 2 * retention.ended_for;
  auto& query = log_.sql(
      "SELECT 1 FROM sessions s LEFT JOIN heads h ON h.session = s.id WHERE s.id = ?1 AND "
      "(s.ended_ms IS NOT NULL OR s.health = 'dead') AND coalesce(h.seq, 0) = ?2 AND (?3 = 1 OR "
      "NOT EXISTS (SELECT 1 FROM alerts a JOIN deliveries d ON d.alert = a.id WHERE a.session = "
      "s.id AND d.state = 'pending'))");
  const ResetLater later(query);
  query.bind(1, over.session).bind(2, over.head);
  query.bind(3, over.tick < log_.now - untold_for ? 1 : 0);
  return query.step();
}

std::optional<Store::State::Retainer::Over> Store::State::Retainer::next_to_drop(
    const Retention& retention) {
  const bool too_large = bytes_used() > retention.bytes_max;
  if (const auto begun = std::exchange(dropping_, std::nullopt);
      begun && is_still_over(*begun, too_large, retention))
    return begun;
  for (; next_over_ < over_.size(); ++next_over_) {
    const auto& oldest = over_[next_over_];
    if (!too_large && (!may_age() || oldest.tick > log_.now - retention.ended_for)) break;
    if (!is_still_over(oldest, too_large, retention)) continue;
    ++next_over_;
    return oldest;
  }
  wants_room = too_large;
  return std::nullopt;
}

bool Store::State::Retainer::drop_ended(const Retention& retention) {
  wants_room = false;
  int events_left = trim_events;
  while (events_left > 0) {
    const auto over = next_to_drop(retention);
    if (!over) break;
    drop_session(over->session, over->tick, events_left);
  }
  return events_left < trim_events;
}

/// Alerts are kept as long as ended sessions are, also those of sessions that run for ever. One
/// that waits for its group or its receiver is not old, however long ago its trouble began.
bool Store::State::Retainer::drop_alerts(const Retention& retention) {
  if (!may_age()) return false;
  auto& query = log_.sql(
      "SELECT id FROM alerts a WHERE told_tick <= ?1 AND (told_tick <= ?2 OR NOT EXISTS (SELECT 1 "
      "FROM deliveries d WHERE d.alert = a.id AND d.state = 'pending')) ORDER BY told_tick LIMIT "
      "100");
  query.bind(1, (log_.now - retention.ended_for).time_since_epoch().count());
  query.bind(2, (log_.now - 2 * retention.ended_for).time_since_epoch().count());
  std::vector<std::int64_t> old;
  while (query.step()) old.push_back(query.integer(0));
  query.reset();
  if (old.empty()) return false;
  changed_ = true;
  for (const auto id : old) {
    for (const std::string_view text :
         {"DELETE FROM deliveries WHERE alert = ?", "DELETE FROM alerts WHERE id = ?"}) {
      auto& drop = log_.sql(text);
      drop.bind(1, id);
      drop.run();
    }
  }
  return true;
}

/// Drops the oldest events of running sessions, if ended sessions are not enough.
bool Store::State::Retainer::drop_oldest(const Retention& retention) {
  if (retention.more_end || bytes_used() <= retention.bytes_max) return false;
  auto& query = log_.sql(
      "SELECT max(seq), count(*) FROM (SELECT seq FROM events WHERE seq <= ? ORDER BY seq "
      "LIMIT ?) AS oldest");
  query.bind(1, retention.folded_through).bind(2, trim_events);
  query.step();
  const Seq last = query.integer(0);
  const auto count = query.integer(1);
  query.reset();
  if (count < trim_events) return false;  // all that is left is needed
  changed_ = true;
  for (const std::string_view text :
       {"DELETE FROM events WHERE seq <= ?", "DELETE FROM blocks WHERE seq <= ?"}) {
    auto& drop = log_.sql(text);
    drop.bind(1, last);
    drop.run();
  }
  auto& first = log_.sql(
      "INSERT INTO meta (key, value) VALUES ('first_seq', ?) ON CONFLICT (key) DO "
      "UPDATE SET value = excluded.value");
  first.bind(1, last + 1);
  first.run();
  return true;
}

/// Drops the oldest day on a server when its newest event is as old as sessions that are dropped.
/// Sessions that have newer events lose those of that day, once they are in snapshots.
bool Store::State::Retainer::drop_old_part(const Retention& retention) {
  if (log_.server == nullptr || !may_age()) return false;
  const auto end = log_.server->end_of_oldest_part(log_.next_seq);
  if (!end || *end > retention.folded_through + 1) return false;
  auto& newest = log_.sql("SELECT tick_ms FROM events WHERE seq < ? ORDER BY seq DESC LIMIT 1");
  newest.bind(1, *end);
  const Instant until{Millis{newest.step() ? newest.integer(0) : 0}};
  newest.reset();
  if (until > log_.now - retention.ended_for) return false;
  // Each monitor writes the snapshots of its own sessions.
  auto& needed = log_.sql(
      "SELECT 1 FROM sessions s JOIN heads h ON h.session = s.id LEFT JOIN snapshots p ON "
      "p.session = s.id WHERE s.ended_ms IS NULL AND coalesce(p.seq, 0) < h.seq AND "
      "coalesce(p.seq, "
      "0) < ? LIMIT 1");
  needed.bind(1, *end - 1);
  const bool is_needed = needed.step();
  needed.reset();
  if (is_needed) return false;
  changed_ = true;
  log_.server->drop_parts_before(*end);
  for (const std::string_view text :
       {"DELETE FROM blocks WHERE seq < ?",
        "INSERT INTO meta (key, value) VALUES ('first_seq', ?) ON CONFLICT (key) DO UPDATE SET "
        "value = excluded.value"}) {
    auto& statement = log_.sql(text);
    statement.bind(1, *end);
    statement.run();
  }
  return true;
}

/// Merges adjacent heartbeat rows in one block of one running session. A row with a transition
/// stays the end of its run, and rows with an absence of the observer between them stay apart, so
/// that a replay concludes the same.
bool Store::State::Retainer::merge_heartbeats(const Retention& retention) {
  auto& block = log_.sql(
      "SELECT session, seq FROM blocks WHERE (session, seq) > (?, ?) ORDER BY session, seq "
      "LIMIT 2");
  const auto begun = std::chrono::steady_clock::now();
  for (int looked = 0; looked < trim_events; ++looked) {
    // Each look is a round trip there, while all writers wait.
    if (log_.server != nullptr && std::chrono::steady_clock::now() - begun > piece_max) return true;
    block.reset().bind(1, merging_.session).bind(2, merging_.from);
    if (!block.step()) {
      block.reset();
      merging_ = {};
      return false;  // the round is over
    }
    const SessionKey session = block.integer(0);
    const Seq end = block.integer(1);
    const bool more = block.step() && block.integer(0) == session;
    const Seq following = more ? block.integer(1) : 0;
    block.reset();
    if (session != merging_.session) {
      merging_ = {.session = session, .from = merged_[session]};
      continue;
    }
    if (end > retention.folded_through || !merge_block(retention, end, following)) {
      merging_.from = std::numeric_limits<Seq>::max();  // nothing more to do for this session
      continue;
    }
    merged_[session] = merging_.from;
    return true;
  }
  return true;
}

/// Merges what can be in the block that ends at `end`; false if it is not old enough yet.
/// `following` is the end of the next block, 0 if there is none.
bool Store::State::Retainer::merge_block(const Retention& retention, Seq end, Seq following) {
  auto events = log_.reader.state_->walk(end, merging_.from);
  if (events.empty() || events.back().tick >= log_.now - retention.heartbeats_for) return false;
  changed_ = true;

  std::unordered_set<Seq> turning_points;
  auto& turns = log_.sql("SELECT seq FROM transitions WHERE session = ?");
  turns.bind(1, merging_.session);
  while (turns.step()) turning_points.insert(turns.integer(0));
  turns.reset();

  const auto absences =
      log_.reader.state_->walk(log_.reader.state_->head_of(observer_key), merging_.from);
  const auto observer_between = [&](Seq earlier, Seq later) {
    return std::any_of(absences.begin(), absences.end(), [&](const Event& absence) {
      return earlier < absence.seq && absence.seq < later;
    });
  };
  const auto session = log_.reader.session(merging_.session);
  if (!session) throw SqlFailure{session.error()};
  const auto judged = log_.reader.fold(*session);
  if (!judged) throw SqlFailure{judged.error()};
  // A shorter interval may have been judged as silence.
  const auto interval = std::min(judged->policy->heartbeat_interval,
                                 patched(Policy{}, session->spec.policy).heartbeat_interval);

  std::int64_t rows_left = 0;
  for (std::size_t at = 0; at < events.size(); ++at) {
    Event& event = events[at];
    ++rows_left;
    if (at + 1 == events.size()) break;
    Event& next = events[at + 1];
    if (!may_merge(event) || !may_merge(next) || event.late != next.late ||
        event.origin != next.origin || turning_points.contains(event.seq) ||
        observer_between(event.seq, next.seq)) {
      continue;
    }
    auto& row = std::get<Heartbeats>(event.report.detail);
    const auto& newer = std::get<Heartbeats>(next.report.detail);
    if (!same_row(row, newer) || !keeps_rise(row, newer) || !regular(row, newer, interval))
      continue;
    if (row.first_stored == Instant{}) row.first_stored = event.tick;
    absorb(row, newer);
    next.report.detail = std::move(row);
    next.prev = event.prev;
    const auto facts = facts_of(next.report, next.tick);
    auto& widen = log_.sql("UPDATE events SET prev = ?, facts = ? WHERE seq = ?");
    widen.bind(1, next.prev).bind(2, facts).bind(3, next.seq);
    widen.run();
    auto& drop = log_.sql("DELETE FROM events WHERE seq = ?");
    drop.bind(1, event.seq);
    drop.run();
    --rows_left;
  }
  // A block that became short is joined with the one after it; long ones bound how far paging
  // walks.
  if (rows_left < block_events / 2 && following != 0 && following <= retention.folded_through) {
    auto& join = log_.sql("DELETE FROM blocks WHERE session = ? AND seq = ?");
    join.bind(1, merging_.session).bind(2, end);
    join.run();
  } else {
    merging_.from = end;
  }
  return true;
}

void Store::State::Retainer::begin_round(const Retention& retention) {
  const bool done = next_over_ == over_.size();
  if (!searched_ || (done && wants_room)) find_over(retention);
}

bool Store::State::Retainer::do_piece(const Retention& retention) {
  changed_ = false;
  const bool busy = drop_ended(retention) || drop_old_part(retention) || drop_oldest(retention) ||
                    drop_alerts(retention) || merge_heartbeats(retention);
  if (!busy) drop_audit(retention);
  if (changed_) {
    log_.keep_floors();
    log_.appender.heads.clear();
  }
  return busy;
}

void Store::State::Retainer::end_round() {
  over_ = {};
  next_over_ = 0;
  searched_ = false;
}

Result<bool> RetentionActs::trim(const Retention& retention) {
  auto& state = state_;
  try {
    state.retainer.begin_round(retention);
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
  auto more = state.in_turn<bool>([&]() -> Result<bool> {
    state.stamp();
    return state.retainer.do_piece(retention);
  });
  if (!more || store_.vanished()) return more;  // a log without a name takes no more pages
  if (state.server != nullptr) {
    if (!*more) state.retainer.end_round();
    return more;
  }
  try {
    // New data takes free pages first, so they stay while there is more to drop.
    const auto free_pages = state.database->pragma("freelist_count");
    if (free_pages > 0 && (!*more || store_.bytes() > retention.bytes_max)) {
      state.database->exec(give_back);
    }
    if (*more || free_pages > give_back_pages) return true;
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
  state.retainer.end_round();
  return false;
}

std::optional<std::string> RetentionActs::retention_waits() const {
  const auto line = store_.now();
  const auto difference = state_.options.clock->wall().time_since_epoch() - line.time_since_epoch();
  const auto hours = std::to_string(std::chrono::abs(difference) / std::chrono::hours(1)) + " h ";
  if (std::chrono::abs(difference) > clocks_differ_max) {
    return "retention by age waits: the clock of this machine is " + hours +
           (difference > Millis{0} ? "ahead of" : "behind") +
           " the time line of the database, so one of both is wrong. Nothing is dropped by its age "
           "until they agree. Set the clock; if it is right, they agree " +
           (difference > Millis{0} ? "after the next start of the machine"
                                   : "as soon as it has caught up");
  }
  if (line - state_.retainer.leap <= clocks_differ_max) {
    return "retention by age waits for an hour: since the newest event in the database the clock "
           "of "
           "this machine went far ahead. If it is wrong, set it now";
  }
  return std::nullopt;
}

bool RetentionActs::wants_room() const noexcept {
  return state_.retainer.wants_room;
}

std::int64_t Store::bytes() const {
  try {
    if (state_->server != nullptr) return state_->server->bytes();
    return state_->database->pragma("page_count") * state_->database->pragma("page_size");
  } catch (const SqlFailure&) {
    return 0;
  }
}

void RetentionActs::shed_memory() {
  state_.appender.heads.clear();
  if (state_.server != nullptr) return;
  try {
    state_.database->exec("PRAGMA shrink_memory");
  } catch (const SqlFailure&) {  // it goes on with what it has
  }
}

std::vector<SessionKey> RetentionActs::drain_dropped() {
  return std::exchange(state_.retainer.dropped, {});
}

}  // namespace watchdog
