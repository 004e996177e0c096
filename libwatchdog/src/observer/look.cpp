// The observer's look: it folds the new events, records what follows from them, reads a piece of
// what is unread, and then lets time pass (passing_time.cpp). A change is recorded before it is
// passed on.
#include <chrono>

#include "judge/situation.h"
#include "observer/observer_state.h"
#include "store/alert_acts.h"
#include "store/event_reader.h"

namespace watchdog {
namespace {

/// A snapshot is written at every transition and at least after this many events.
constexpr int snapshot_events = 1'000;

/// A change that lists show is kept as well, even if it is not a transition.
auto look_of(const Case& judged) {
  const auto& history = judged.history;
  return std::tuple(history.lifecycle, standing_of(judged, WallTime{}),
                    history.notes->words->prompt.empty());
}

}  // namespace

std::string Observer::State::situation(const Case& judged, Instant then) {
  SituationContext around;
  // Unreadable events are left out; the next reader of the file gets the error.
  if (auto events = EventReader(store.reader()).up_to(judged.history.seq, situation_events))
    around.events = std::move(*events);
  // The present process says nothing about an earlier time.
  if (store.now() - then <= options.late_max) around.process = processes.tree_of(judged.history);
  return situation_of(judged, then, around);
}

void Observer::State::settle(LiveSession& session, bool changed) {
  const auto key = session.judged.session;
  families.note(session);
  const auto* parent = sessions.parent_of(key);
  if (parent != nullptr && calls.note_child(*parent, session))
    schedule.enqueue(*sessions.find(parent->judged.session));
  tallies.count(session.counted, Tally::part_of(session.judged, sessions.family_of(key)));
  sessions.note_turns(session);
  const bool has_ended = is_end(session.judged.history.lifecycle);
  if (changed || has_ended || session.since_snapshot >= snapshot_events) {
    if (to_keep.empty() || to_keep.back() != key) to_keep.push_back(key);
  }
  if (has_ended) {
    ended.insert(key);
  } else {
    schedule.enqueue(session);
  }
}

Result<void> Observer::State::fold(const Event& event) {
  if (event.session == observer_key) {
    const std::lock_guard guard(sessions.mutex);
    for (auto& [key, session] : sessions.all()) {
      if (event.seq <= session.judged.folded || session.judged.history.seq == 0) continue;
      const auto before = changes.size();
      session.judged.fold(event, changes, &details);
      ++session.since_snapshot;
      settle(session, changes.size() != before);
    }
    return {};
  }
  if (!store.owns(event.session)) {
    see_foreign(event);
    return {};
  }
  LiveSession* session = sessions.find(event.session);
  if (session == nullptr) {
    auto loaded = Loading(*this).load(event.session);
    if (!loaded && loaded.error().code != ErrorCode::not_found) return loaded.error();
    return {};  // not_found: retention was quicker
  }
  if (event.seq <= session->judged.folded) return {};
  const std::lock_guard guard(sessions.mutex);
  const auto before = changes.size();
  const auto looked_like = look_of(session->judged);
  ended.erase(event.session);
  session->judged.fold(event, changes, &details);
  ++session->since_snapshot;
  settle(*session, changes.size() != before || looked_like != look_of(session->judged));
  return {};
}

void Observer::State::publish(const Event& event) const {
  const auto session = sessions.all().find(event.session);
  if (session != sessions.all().end()) return options.seen(event, session->second.id);
  const auto other = foreign.find(event.session);
  if (other != foreign.end()) options.seen(event, other->second.id);
}

Result<void> Observer::State::catch_up() {
  while (true) {
    auto events = EventReader(store.reader()).after(cursor, piece_events, page_bytes_max);
    if (!events) return events.error();
    for (const auto& event : *events) {
      if (auto folded_event = fold(event); !folded_event) return folded_event;
      cursor = event.seq;
      if (options.seen) publish(event);
    }
    if (events->empty()) return {};
    if (options.seen_some) options.seen_some();
    if (auto kept = keep(); !kept) return kept;
  }
}

void Observer::State::forget(SessionKey key) {
  unread.erase(key);
  processes.forget(key);
  calls.forget(key);
  auto* session = sessions.find(key);
  if (session == nullptr) return;
  tallies.count(session->counted, {});
  sessions.forget(key);
}

Result<void> Observer::State::keep() {
  if (changes.empty() && to_keep.empty()) return {};
  tallies.show(*this);
  Conclusions verdicts{.transitions = changes,
                       .alerts = options.alerts ? &*options.alerts : nullptr};
  for (const auto key : to_keep) {
    if (auto* session = sessions.find(key)) verdicts.snapshots.push_back(&session->judged);
  }
  const auto recorded = store.record(verdicts);
  if (!recorded) {
    incomplete = true;  // its sessions may be another monitor's by now
    return recorded.error();
  }
  for (const auto key : to_keep) {
    if (auto* session = sessions.find(key)) session->since_snapshot = 0;
  }
  if (name.empty()) {
    if (options.concluded) publish(*recorded);
  } else if (!changes.empty()) {
    recorded_transition = *recorded + static_cast<std::int64_t>(changes.size()) - 1;
  }
  changes.clear();
  to_keep.clear();
  if (!ended.empty()) {
    const std::lock_guard guard(sessions.mutex);
    for (const auto key : ended) forget(key);
    ended.clear();
  }
  return {};
}

void Observer::State::publish(std::int64_t id) {
  for (auto& change : changes) {
    TransitionRow row{.id = id++, .detector = std::string(detector_version), .quiet = change.quiet};
    row.transition = std::move(change);
    const auto* session = sessions.find(row.transition.session);
    if (session != nullptr) options.concluded(row, session->id);
  }
}

Result<Instant> Observer::State::look() {
  processes.begin_look();
  if (incomplete) {
    if (auto again = Loading(*this).begin_again(); !again) return again.error();
  }
  if (auto caught = catch_up(); !caught) return caught.error();
  // Acts on a session that another monitor judges reach that one with its next load.
  for (const auto& [key, known] : AlertActs(store).drain_known()) {
    auto* session = sessions.find(key);
    if (session == nullptr || !is_trouble(session->judged.health.kind)) continue;
    const std::lock_guard guard(sessions.mutex);
    session->judged.history.notes.edit().acknowledged = known;
    families.note(*session);
    tallies.count(session->counted, Tally::part_of(session->judged, sessions.family_of(key)));
  }
  if (auto kept = keep(); !kept) return kept.error();
  if (auto loaded = Loading(*this).load_some(); !loaded) return loaded.error();
  if (auto expired = expire(); !expired) return expired.error();
  if (auto concluded = notify_parents(); !concluded) return concluded.error();
  if (auto concluded = pass_on_transitions(); !concluded) return concluded.error();
  if (auto exchanged = tallies.exchange(*this); !exchanged) return exchanged.error();
  // Sessions whose alerts are due may be better by what was not read yet.
  if (!unread.empty()) return store.now();
  if (!options.alerts) return schedule.first();
  AlertActs alerts(store);
  if (!knows_channels) {
    if (auto given = alerts.give_to_new_channels(*options.alerts); !given) return given.error();
    knows_channels = true;
  }
  const auto alert = alerts.next_due(*options.alerts);
  return alert ? std::min(schedule.first(), *alert) : alert;
}

}  // namespace watchdog
