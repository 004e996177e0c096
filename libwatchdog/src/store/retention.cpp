#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

#include "json/facts.h"
#include "store/store_state.h"

namespace watchdog {
namespace {

/// Events handled in one piece: some milliseconds of the writers' queue.
constexpr int trim_events = 1'000;

bool may_merge(const Event& event) {
  return event.report.kind == ReportKind::heartbeat && event.report.event_id.empty() &&
         !event.report.ts_ms && !event.report.expect_quiet;
}

/// True if the newest rise of a counter is still known to be where it was.
bool keeps_rise(const Beats& row, const Beats& next) {
  return (row.counters.empty() && next.counters.empty()) || rises(row.counters, next.counters);
}

/// True if the gaps in and between the rows move no bound, wherever in a merged row they are.
bool regular(const Beats& row, const Beats& next, Millis interval) {
  return row.source == Source::loop ||
         2 * std::max({row.max_gap, next.max_gap, next.first - row.last}) < 3 * interval;
}

}  // namespace

/// Deletions may take the newest event with them: what comes next must still be above it.
void Store::State::keep_floors() {
  auto& floor =
      sql("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET "
          "value = max(value, excluded.value)");
  floor.bind(1, std::string_view("next_seq")).bind(2, next_seq);
  floor.run();
  floor.bind(1, std::string_view("last_tick_ms")).bind(2, last_tick.time_since_epoch().count());
  floor.run();
  floor.bind(1, std::string_view("last_transition")).bind(2, newest_transition());
  floor.run();
}

/// Deletes a piece of the session's events, and once they are gone the session itself.
void Store::State::drop_session(SessionKey session) {
  changed = true;
  auto& previous = sql("SELECT prev FROM events WHERE seq = ?");
  auto& drop = sql("DELETE FROM events WHERE seq = ?");
  Seq seq = reader.state_->head_of(session);
  for (int count = 0; count < trim_events && seq != 0; ++count) {
    previous.reset().bind(1, seq);
    const Seq next = previous.step() ? previous.integer(0) : 0;
    previous.reset();
    drop.bind(1, seq);
    drop.run();
    seq = next;
  }
  auto& shorten = sql("UPDATE heads SET seq = ? WHERE session = ?");
  shorten.bind(1, seq).bind(2, session);
  shorten.run();
  dropping = seq != 0 ? session : observer_key;
  if (seq != 0) return;
  drop_session_rows(session);
}

/// All that is kept of a session but its events.
void Store::State::drop_session_rows(SessionKey session) {
  dropped.push_back(session);
  merged.erase(session);
  for (const std::string_view text :
       {"DELETE FROM blocks WHERE session = ?", "DELETE FROM transitions WHERE session = ?",
        "DELETE FROM snapshots WHERE session = ?", "DELETE FROM labels WHERE session = ?",
        "DELETE FROM deliveries WHERE alert IN (SELECT id FROM alerts WHERE session = ?)",
        "DELETE FROM alerts WHERE session = ?", "DELETE FROM alert_states WHERE session = ?",
        "DELETE FROM heads WHERE session = ?", "DELETE FROM sessions WHERE id = ?"}) {
    auto& statement = sql(text);
    statement.bind(1, session);
    statement.run();
  }
}

bool Store::State::drop_ended(const Retention& retention) {
  if (dropping != observer_key) {
    auto& again =
        sql("SELECT 1 FROM sessions WHERE id = ? AND (ended_ms IS NOT NULL OR health = 'dead')");
    const ResetLater later(again);
    again.bind(1, dropping);
    const bool still = again.step();  // unless somebody took it up again
    again.reset();
    if (still) {
      drop_session(dropping);
    } else {
      dropping = observer_key;
    }
    return true;
  }
  const auto pages = database->pragma("page_count") - database->pragma("freelist_count");
  const bool too_large = pages * database->pragma("page_size") > retention.bytes_max;
  // Dead sessions count as ended since their death.
  auto& query =
      sql("SELECT id FROM sessions WHERE (ended_ms IS NOT NULL AND ended_ms <= ?1) OR "
          "(health = 'dead' AND ended_ms IS NULL AND updated_ms <= ?1 AND "
          "(SELECT seq FROM heads WHERE session = sessions.id) <= ?2) "
          "ORDER BY coalesce(ended_ms, updated_ms) LIMIT 1");
  const ResetLater later(query);
  const auto limit = too_large ? wall : wall - retention.ended_for;
  query.bind(1, limit.time_since_epoch().count()).bind(2, retention.folded_through);
  if (!query.step()) return false;
  const auto session = query.integer(0);
  query.reset();
  drop_session(session);
  return true;
}

/// Alerts are kept as long as ended sessions are, also those of sessions that run for ever.
bool Store::State::drop_alerts(const Retention& retention) {
  auto& query = sql(
      "SELECT max(id) FROM (SELECT id, at_ms FROM alerts ORDER BY id LIMIT 100) WHERE at_ms <= ?");
  const ResetLater later(query);
  query.bind(1, (wall - retention.ended_for).time_since_epoch().count());
  query.step();
  const auto last = query.integer(0);
  query.reset();
  if (last == 0) return false;
  changed = true;
  for (const std::string_view text :
       {"DELETE FROM deliveries WHERE alert <= ?", "DELETE FROM alerts WHERE id <= ?"}) {
    auto& drop = sql(text);
    drop.bind(1, last);
    drop.run();
  }
  return true;
}

/// Where ended sessions are not enough: the oldest events of the running ones.
bool Store::State::drop_oldest(const Retention& retention) {
  const auto pages = database->pragma("page_count") - database->pragma("freelist_count");
  if (pages * database->pragma("page_size") <= retention.bytes_max) return false;
  auto& query =
      sql("SELECT max(seq), count(*) FROM (SELECT seq FROM events WHERE seq <= ? ORDER BY seq "
          "LIMIT ?)");
  query.bind(1, retention.folded_through).bind(2, trim_events);
  query.step();
  const Seq last = query.integer(0);
  const auto count = query.integer(1);
  query.reset();
  if (count < trim_events) return false;  // all that is left is needed
  changed = true;
  for (const std::string_view text :
       {"DELETE FROM events WHERE seq <= ?", "DELETE FROM blocks WHERE seq <= ?"}) {
    auto& drop = sql(text);
    drop.bind(1, last);
    drop.run();
  }
  auto& first =
      sql("INSERT INTO meta (key, value) VALUES ('first_seq', ?) ON CONFLICT (key) DO "
          "UPDATE SET value = excluded.value");
  first.bind(1, last + 1);
  first.run();
  return true;
}

/// Looks at one block of one running session: heartbeat rows that stand side by side become one.
/// A row at which a transition happened stays the end of its run, and rows with an absence of the
/// observer between them stay apart, so that a replay concludes the same.
bool Store::State::merge_heartbeats(const Retention& retention) {
  auto& block =
      sql("SELECT session, seq FROM blocks WHERE (session, seq) > (?, ?) ORDER BY session, seq "
          "LIMIT 2");
  for (int looked = 0; looked < trim_events; ++looked) {
    block.reset().bind(1, merging.session).bind(2, merging.from);
    if (!block.step()) {
      block.reset();
      merging = {};
      return false;  // the round is over
    }
    const SessionKey session = block.integer(0);
    const Seq end = block.integer(1);
    const bool more = block.step() && block.integer(0) == session;
    const Seq following = more ? block.integer(1) : 0;
    block.reset();
    if (session != merging.session) {
      merging = {.session = session, .from = merged[session]};
      continue;
    }
    if (end > retention.folded_through || !merge_block(retention, end, following)) {
      merging.from = std::numeric_limits<Seq>::max();  // nothing more to do for this session
      continue;
    }
    merged[session] = merging.from;
    return true;
  }
  return true;
}

/// Merges what can be in the block that ends at `end`; false if it is not old enough yet.
/// `following` is the end of the next block, 0 if there is none.
bool Store::State::merge_block(const Retention& retention, Seq end, Seq following) {
  auto events = reader.state_->walk(end, merging.from);
  if (events.empty() || events.back().tick >= now - retention.heartbeats_for) return false;
  changed = true;

  std::unordered_set<Seq> turning_points;
  auto& turns = sql("SELECT seq FROM transitions WHERE session = ?");
  turns.bind(1, merging.session);
  while (turns.step()) turning_points.insert(turns.integer(0));
  turns.reset();

  const auto absences = reader.state_->walk(reader.state_->head_of(observer_key), merging.from);
  const auto observer_between = [&](Seq earlier, Seq later) {
    return std::any_of(absences.begin(), absences.end(), [&](const Event& absence) {
      return earlier < absence.seq && absence.seq < later;
    });
  };
  const auto session = reader.session(merging.session);
  if (!session) throw SqlFailure{session.error()};
  const auto judged = reader.fold(*session);
  if (!judged) throw SqlFailure{judged.error()};
  // What was judged by a shorter interval may have been silence.
  const auto interval = std::min(judged->policy->heartbeat_interval,
                                 patched(Policy{}, session->spec.policy).heartbeat_interval);

  std::int64_t rows_left = 0;
  for (std::size_t at = 0; at < events.size(); ++at) {
    Event& event = events[at];
    ++rows_left;
    if (at + 1 == events.size()) break;
    Event& next = events[at + 1];
    if (!may_merge(event) || !may_merge(next) || event.late != next.late ||
        turning_points.contains(event.seq) || observer_between(event.seq, next.seq)) {
      continue;
    }
    auto& row = std::get<Beats>(event.report.detail);
    const auto& newer = std::get<Beats>(next.report.detail);
    if (!same_row(row, newer) || !keeps_rise(row, newer) || !regular(row, newer, interval))
      continue;
    if (row.told == Instant{}) row.told = event.tick;
    absorb(row, newer);
    next.report.detail = std::move(row);
    next.prev = event.prev;
    const auto facts = facts_of(next.report, next.tick);
    auto& widen = sql("UPDATE events SET prev = ?, facts = ? WHERE seq = ?");
    widen.bind(1, next.prev).bind(2, facts).bind(3, next.seq);
    widen.run();
    auto& drop = sql("DELETE FROM events WHERE seq = ?");
    drop.bind(1, event.seq);
    drop.run();
    --rows_left;
  }
  // A block that became short is joined with the one after it; long ones bound how far paging
  // walks.
  if (rows_left < block_events / 2 && following != 0 && following <= retention.folded_through) {
    auto& join = sql("DELETE FROM blocks WHERE session = ? AND seq = ?");
    join.bind(1, merging.session).bind(2, end);
    join.run();
  } else {
    merging.from = end;
  }
  return true;
}

Result<bool> Store::trim(const Retention& retention) {
  auto more = state_->in_turn<bool>([&]() -> Result<bool> {
    state_->stamp();
    state_->changed = false;
    const bool busy = state_->drop_ended(retention) || state_->drop_oldest(retention) ||
                      state_->drop_alerts(retention) || state_->merge_heartbeats(retention);
    if (!busy) state_->drop_audit(retention);
    if (state_->changed) {
      state_->keep_floors();
      state_->heads.clear();
    }
    return busy;
  });
  if (!more || !state_->changed) return more;
  try {
    state_->database->exec("PRAGMA incremental_vacuum(100)");
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
  return more;
}

std::vector<SessionKey> Store::take_dropped() {
  return std::exchange(state_->dropped, {});
}

}  // namespace watchdog
