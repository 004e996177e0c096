// Sessions as judged by their events: `fold` begins with the snapshot and merges the session's
// later events with the observer's absences. Several sessions are read together from a server,
// where each question is a round trip. One question finds the newest events of all; of the few
// sessions that have more since their snapshots, the rest is read one by one.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codec/facts.h"
#include "store/event_row.h"
#include "store/sharing.h"
#include "store/store_state.h"
#include "store/transition_reader.h"

namespace watchdog {
namespace {

/// Of each session that is read together with others: then the rest is read by itself.
constexpr int newest_events = 16;
constexpr int newest_bytes = 65'536;

using SnapshotTexts = std::unordered_map<SessionKey, std::string>;
using EventsOf = std::unordered_map<SessionKey, std::vector<Event>>;

constexpr std::string_view snapshots_question =
    "SELECT session, text FROM snapshots WHERE session = ANY(?) AND format = ?";

SnapshotTexts snapshots_of(std::span<const SessionKey> sessions, Statement& query) {
  const ResetLater later(query);
  query.bind_numbers(1, sessions).bind(2, snapshot_format);
  SnapshotTexts texts;
  while (query.step()) texts.emplace(query.integer(0), query.text(1));
  return texts;
}

/// The subquery with a limit is looked up by its key for each row.
std::string question_for_newest() {
  const std::string columns(event_columns);
  const std::string event = " CROSS JOIN LATERAL (SELECT " + columns + " FROM events WHERE seq = ";
  return "WITH RECURSIVE chain AS (SELECT w.low, 1 AS step, 0 AS size, e.* FROM "
         "unnest(?::bigint[], "
         "?::bigint[]) AS w (head, low)" +
         event +
         "w.head LIMIT 1) e UNION ALL SELECT c.low, c.step + 1, c.size + "
         "coalesce(octet_length(c.content), 0) + coalesce(octet_length(c.facts), 0), e.* FROM "
         "chain c" +
         event + "c.prev LIMIT 1) e WHERE c.prev > c.low AND c.step < " +
         std::to_string(newest_events) + " AND c.size < " + std::to_string(newest_bytes) +
         ") SELECT " + columns + " FROM chain ORDER BY seq";
}

}  // namespace

/// REQUIRES: a server. Returns the events of each session after its `after`, oldest first.
EventsOf StoreReader::State::events_of(std::span<const SessionRow> rows,
                                       std::span<const Seq> after) {
  std::vector<Seq> heads;
  std::vector<Seq> lows;
  std::unordered_map<SessionKey, Seq> low_of;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (rows[at].head <= after[at]) continue;
    heads.push_back(rows[at].head);
    lows.push_back(after[at]);
    low_of.emplace(rows[at].key, after[at]);
  }
  EventsOf events;
  if (heads.empty()) return events;
  auto& query = prepared(question_for_newest());
  query.bind_numbers(1, heads).bind_numbers(2, lows);
  while (query.step()) {
    auto event = event_from(query);
    events[event.session].push_back(std::move(event));
  }
  query.reset();
  for (auto& [session, newest] : events) {
    const auto low = low_of.at(session);
    if (newest.front().prev <= low) continue;
    auto earlier = walk(newest.front().prev, low);
    std::move(newest.begin(), newest.end(), std::back_inserter(earlier));
    newest = std::move(earlier);
  }
  return events;
}

Result<std::vector<TransitionRow>> TransitionReader::unwritten(const SessionRow& session,
                                                               Instant now) {
  std::vector<Transition> changes;
  auto judged = reader_.fold(session, &changes);
  if (!judged) return judged.error();
  judged->expire(now, changes);
  return state_.guarded<std::vector<TransitionRow>>([&]() -> Result<std::vector<TransitionRow>> {
    auto& newest =
        state_.prepared("SELECT id FROM transitions WHERE session = ? ORDER BY id DESC LIMIT 1");
    const ResetLater newest_later(newest);
    newest.bind(1, session.key);
    std::int64_t id = newest.step() ? newest.integer(0) : 0;
    auto& event = state_.prepared("SELECT tick_ms FROM events WHERE seq = ?");
    const ResetLater event_later(event);
    std::vector<TransitionRow> rows;
    for (auto& change : changes) {
      TransitionRow row{.id = ++id, .detector = std::string(detector_version)};
      event.reset().bind(1, change.seq);
      if (event.step()) row.quiet = change.tick - Instant{Millis{event.integer(0)}};
      row.transition = std::move(change);
      rows.push_back(std::move(row));
    }
    return rows;
  });
}

/// `own` and `absences` are in order; absences from before the snapshot count no more.
void StoreReader::State::fold_into(Case& judged, std::span<const Event> own,
                                   std::span<const Event> absences,
                                   std::vector<Transition>* changes,
                                   const DetailProvider* details) {
  const auto folded = judged.folded;
  const auto by_seq = [](const Event* a, const Event* b) { return a->seq < b->seq; };
  std::vector<const Event*> mine;
  std::vector<const Event*> all;
  for (const auto& event : own) mine.push_back(&event);
  std::vector<const Event*> later;
  for (const auto& event : absences)
    if (event.seq > folded) later.push_back(&event);
  std::merge(mine.begin(), mine.end(), later.begin(), later.end(), std::back_inserter(all), by_seq);
  std::vector<Transition> concluded;
  for (const auto* event : all) {
    if (event->session == observer_key && judged.history.seq == 0)
      continue;  // it was not there yet
    judged.fold(*event, concluded, details);
  }
  if (changes != nullptr) add_unwritten(concluded, judged, *changes);
}

Result<Case> StoreReader::fold(const SessionRow& row, std::vector<Transition>* changes,
                               const DetailProvider* details) {
  return state_->guarded<Case>([&]() -> Result<Case> {
    const Transaction one_view(*state_->database, Transaction::Kind::read);
    auto& query = state_->prepared("SELECT text FROM snapshots WHERE session = ? AND format = ?");
    query.bind(1, row.key).bind(2, snapshot_format);
    std::optional<std::string> snapshot;
    if (query.step()) snapshot = query.text(0);
    query.reset();
    Case judged = state_->case_from(row, snapshot ? &*snapshot : nullptr);

    const auto own = state_->walk(state_->head_of(row.key), judged.folded);
    // Absences of the observer concern every session that was there.
    const auto absences = state_->walk(state_->head_of(observer_key), judged.folded);
    state_->fold_into(judged, own, absences, changes, details);
    if (row.acknowledged) judged.history.notes.edit().acknowledged = true;
    return judged;
  });
}

Result<std::vector<FoldedSession>> Sharing::fold(std::span<const SessionKey> sessions,
                                                 const DetailProvider* details) {
  using All = std::vector<FoldedSession>;
  auto& reader = *state_.reader.state_;
  if (state_.server == nullptr) return fold_one_by_one(sessions, details);
  return reader.guarded<All>([&]() -> Result<All> {
    const Transaction one_view(*reader.database, Transaction::Kind::read);
    auto rows = reader.rows_of(sessions);
    if (!rows) return rows.error();
    const auto snapshots = snapshots_of(sessions, reader.prepared(snapshots_question));
    All all;
    std::vector<Seq> folded;
    for (const auto& row : *rows) {
      const auto snapshot = snapshots.find(row.key);
      auto judged =
          reader.case_from(row, snapshot == snapshots.end() ? nullptr : &snapshot->second);
      folded.push_back(judged.folded);
      all.push_back({.judged = std::move(judged)});
    }
    const auto events = reader.events_of(*rows, folded);
    const auto oldest = std::min_element(folded.begin(), folded.end());
    std::vector<Event> absences;
    if (oldest != folded.end()) absences = reader.walk(reader.head_of(observer_key), *oldest);
    for (std::size_t at = 0; at < all.size(); ++at) {
      auto& one = all[at];
      one.row = std::move((*rows)[at]);
      const auto own = events.find(one.row.key);
      reader.fold_into(one.judged, own == events.end() ? std::span<const Event>{} : own->second,
                       absences, &one.changes, details);
      if (one.row.acknowledged) one.judged.history.notes.edit().acknowledged = true;
    }
    return all;
  });
}

Result<std::vector<FoldedSession>> Sharing::fold_one_by_one(std::span<const SessionKey> sessions,
                                                            const DetailProvider* details) {
  std::vector<FoldedSession> all;
  for (const auto session : sessions) {
    auto row = state_.reader.session(session);
    if (!row && row.error().code == ErrorCode::not_found) continue;
    if (!row) return row.error();
    auto& one = all.emplace_back(FoldedSession{.row = std::move(*row)});
    auto judged = state_.reader.fold(one.row, &one.changes, details);
    if (!judged) return judged.error();
    one.judged = std::move(*judged);
  }
  return all;
}

/// Without a readable snapshot the events give the recorded transitions again. Only if other rules
/// conclude otherwise, the last one is added.
void StoreReader::State::add_unwritten(std::vector<Transition>& concluded, const Case& judged,
                                       std::vector<Transition>& changes) {
  if (concluded.empty()) return;
  auto& newest = prepared(
      "SELECT seq, tick_ms, health FROM transitions WHERE session = ? ORDER BY id DESC LIMIT 1");
  const ResetLater later(newest);
  newest.bind(1, judged.session);
  auto from = concluded.begin();
  if (newest.step()) {
    const std::pair written{Seq{newest.integer(0)}, Instant{Millis{newest.integer(1)}}};
    from = std::find_if(concluded.begin(), concluded.end(), [&](const Transition& change) {
      return std::pair(change.seq, change.tick) > written;
    });
    if (from == concluded.end() && from != concluded.begin() &&
        newest.text(2) != name_of(judged.health.kind)) {
      --from;
    }
  }
  changes.insert(changes.end(), std::make_move_iterator(from),
                 std::make_move_iterator(concluded.end()));
}

/// Returns the session as its snapshot says, or as it was before its first event. A snapshot that
/// cannot be read is as good as none: the events are the truth.
Case StoreReader::State::case_from(const SessionRow& row, const std::string* snapshot) const {
  Case judged;
  judged.session = row.key;
  judged.health_since = row.created;
  judged.own.set(row.spec.policy);
  const bool is_read = snapshot != nullptr && read_snapshot(judged, *snapshot);
  const auto at_start = patched(Policy{}, row.spec.policy);
  if (is_read && *judged.policy == at_start) judged.own.set(row.spec.policy);
  if (policy_for_all) {
    // The settings may be others than when the snapshot was written.
    if (*judged.own == PolicyPatch{}) {
      judged.policy.share(shared_policy);
    } else {
      judged.policy.set(policy_of(*policy_for_all, *judged.own));
    }
  } else if (!is_read) {
    judged.policy.set(at_start);
  }
  return judged;
}

void StoreReader::State::set_policy_for_all(const std::optional<PolicyPatch>& policy) {
  policy_for_all = policy;
  const auto whole = policy_of(policy.value_or(PolicyPatch{}), {});
  shared_policy = whole == Policy{} ? nullptr : std::make_shared<const Policy>(whole);
}

}  // namespace watchdog
