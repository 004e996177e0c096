// How sessions come into memory: all of them when the observer starts. Of the shards that it gains
// later it reads a piece in each look, so reports wait for one piece only. An event brings in its
// session at once. Nothing is concluded of a session before it is in memory, so one that is read
// later is judged later, but not otherwise.
#include <chrono>

#include "observer/observer_state.h"
#include "store/event_reader.h"
#include "store/sharing.h"
#include "store/transition_reader.h"

namespace watchdog {
namespace {

/// Sessions read together, and about how many and how long in one look: reports wait meanwhile.
constexpr std::size_t together_max = 64;
constexpr std::size_t loaded_max = 1'000;
constexpr std::chrono::milliseconds loading_max{50};

}  // namespace

LiveSession& Observer::State::Loading::enter(SessionRow&& row, Case&& judged, bool changed) {
  const std::lock_guard guard(state_.sessions.mutex);
  state_.unread.erase(row.key);
  LiveSession& session = state_.sessions.enter(std::move(row), std::move(judged));
  session.since_snapshot = 1;  // events after the stored one are in no snapshot yet
  state_.settle(session, changed);
  return session;
}

Result<LiveSession*> Observer::State::Loading::load(SessionKey session) {
  auto& reader = state_.store.reader();
  auto row = reader.session(session);
  if (!row) return row.error();
  const auto before = state_.changes.size();
  auto judged = reader.fold(*row, &state_.changes, &state_.details);
  if (!judged) return judged.error();
  return &enter(std::move(*row), std::move(*judged), state_.changes.size() != before);
}

/// Those of them that are not in memory.
Result<void> Observer::State::Loading::load_together(std::span<const SessionKey> keys) {
  std::vector<SessionKey> missing;
  for (const auto key : keys)
    if (state_.sessions.find(key) == nullptr) missing.push_back(key);
  auto read = Sharing(state_.store).fold(missing, &state_.details);
  if (!read) return read.error();
  for (auto& one : *read) {
    const bool changed = !one.changes.empty();
    std::move(one.changes.begin(), one.changes.end(), std::back_inserter(state_.changes));
    (void)enter(std::move(one.row), std::move(one.judged), changed);
  }
  for (const auto key : keys) state_.unread.erase(key);  // the others are gone
  return {};
}

Result<void> Observer::State::Loading::load_some() {
  auto& left = state_.unread;
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t loaded = 0; !left.empty() && loaded < loaded_max; loaded += together_max) {
    const auto count = std::min(left.size(), together_max);
    const std::vector<SessionKey> piece(
        left.begin(), std::next(left.begin(), static_cast<std::ptrdiff_t>(count)));
    if (auto read = load_together(piece); !read) return read;
    if (state_.to_keep.size() >= piece_events) {
      if (auto kept = state_.keep(); !kept) return kept;
    }
    if (std::chrono::steady_clock::now() - begun > loading_max) break;
  }
  Sharing(state_.store).set_taking_over(!left.empty());
  return state_.keep();
}

Result<void> Observer::State::Loading::load_all() {
  while (!state_.unread.empty()) {
    // Many sessions take longer than a lease lasts.
    if (auto renewed = state_.renew_when_due(); !renewed) return renewed;
    if (auto loaded = load_some(); !loaded) return loaded;
  }
  return {};
}

/// Those of them that this monitor judges. Streams go on after what is stored now, because what the
/// former judge recorded last may not have been passed on.
Result<void> Observer::State::Loading::queue(const std::vector<SessionKey>& keys) {
  const auto transition = TransitionReader(state_.store.reader()).newest_id();
  if (!transition) return transition.error();
  for (const auto key : keys)
    if (state_.store.owns(key)) state_.unread.insert(key);
  Sharing(state_.store).set_taking_over(!state_.unread.empty());
  state_.passed_transition = *transition;
  if (state_.options.reloaded) state_.options.reloaded(state_.cursor, *transition);
  return {};
}

Result<void> Observer::State::Loading::hand_over(const HeldShards::Change& change) {
  if (change.empty() || state_.incomplete) return {};  // then all is read again anyway
  state_.incomplete = true;
  const std::set<int> lost(change.lost.begin(), change.lost.end());
  const auto is_lost = [&](SessionKey session) { return lost.contains(shard_of(session)); };
  if (!lost.empty()) {
    std::vector<SessionKey> leaving;
    for (const auto& [session, live] : state_.sessions.all())
      if (is_lost(session)) leaving.push_back(session);
    const std::lock_guard guard(state_.sessions.mutex);
    for (const auto session : leaving) state_.forget(session);
    std::erase_if(state_.unread, is_lost);
    std::erase_if(state_.ended, is_lost);
    std::erase_if(state_.to_keep, is_lost);
    std::erase_if(state_.changes,
                  [&](const auto& transition) { return is_lost(transition.session); });
  }
  if (!change.gained.empty()) {
    auto keys = Sharing(state_.store).sessions_to_take_over();
    if (!keys) return keys.error();
    const std::set<int> gained(change.gained.begin(), change.gained.end());
    std::erase_if(*keys, [&](SessionKey session) { return !gained.contains(shard_of(session)); });
    if (auto queued = queue(*keys); !queued) return queued;
  }
  state_.incomplete = false;
  return {};
}

Result<void> Observer::State::Loading::begin_again() {
  state_.incomplete = true;
  const auto newest = EventReader(state_.store.reader()).newest();
  if (!newest) return newest.error();
  {
    const std::lock_guard guard(state_.sessions.mutex);
    state_.sessions.clear();
    state_.tallies.own = {};
  }
  state_.unread.clear();
  state_.families.clear();
  state_.schedule.clear();
  state_.changes.clear();
  state_.to_keep.clear();
  state_.ended.clear();
  state_.cursor = newest->first;
  const auto keys = state_.store.reader().sessions_to_judge();
  if (!keys) return keys.error();
  if (auto queued = queue(*keys); !queued) return queued;
  state_.incomplete = false;
  // Other writers of a file do not wait for its judge.
  return state_.name.empty() ? load_all() : Result<void>{};
}

}  // namespace watchdog
