// Which slot of the server works on which request. No server says so. A slot that only one request
// can own belongs to it. The other requests get the slots that no stream accounts for, moving ones
// first, and the newest requests get none.
#include <algorithm>
#include <numeric>
#include <utility>

#include "server/server_watch_state.h"

namespace watchdog {
namespace {

/// True if the slot's task may be that request's: it was not there before it, does what the
/// request's own stream shows, and has its parameters.
bool may_own(const TrackedRequest& kept, const WorkingSlot& slot) {
  const bool fits_stream = kept.seen.pieces == 0 || !slot.seen.written.has_value() || slot.writes();
  return kept.seen.since <= slot.first && fits_stream &&
         may_be_of(kept.seen.parameters, slot.seen.parameters);
}

}  // namespace

Evidence evidence_of(const TrackedRequest& kept, const WorkingSlot* slot) {
  const auto& own = kept.seen;
  if (slot != nullptr ? slot->writes() : kept.is_writing)
    return {.state = ServerState::writing,
            .done = std::max(slot != nullptr ? *slot->seen.written : 0, own.pieces)};
  if (own.prompt_tokens > 0)
    return {.state = ServerState::reading, .done = own.prompt_read, .total = own.prompt_tokens};
  return {.state = ServerState::reading,
          .done = slot != nullptr ? slot->seen.prompt_read.value_or(0) : 0};
}

/// Returns the requests whose own streams report nothing now; the oldest first.
std::vector<TrackedRequest*> ServerWatch::State::silent_ones() {
  std::vector<TrackedRequest*> silent;
  for (auto& [request, kept] : open) {
    kept.slot.reset();
    kept.has_no_slot = kept.owns_slot = false;
    if (kept.looks_since_own >= own_looks_max) silent.push_back(&kept);
  }
  std::ranges::stable_sort(silent, {}, [](const TrackedRequest* kept) { return kept->seen.since; });
  return silent;
}

/// Finds the slots that can only be one request's. While another client uses the server too, that
/// is known only for moving streams.
void ServerWatch::State::match_slots() {
  const auto& working = slots.working();
  const bool are_ours = working.size() <= open.size();
  std::vector<TrackedRequest*> unmatched;
  for (auto& [request, kept] : open) {
    kept.match.reset();
    kept.shared = kept.sharers = 0;
    unmatched.push_back(&kept);
  }
  std::vector<std::size_t> unowned(working.size());
  std::iota(unowned.begin(), unowned.end(), std::size_t{0});
  const auto match = [&](TrackedRequest& kept, std::size_t slot) {
    kept.match = slot;
    std::erase(unmatched, &kept);
    std::erase(unowned, slot);
  };
  const auto only = [](const auto& all, const auto& fits) {
    const auto first = std::ranges::find_if(all, fits);
    const bool is_only = first != all.end() && std::none_of(first + 1, all.end(), fits);
    return is_only ? first : all.end();
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (TrackedRequest* kept : std::vector(unmatched)) {
      // A stream that moves has a slot for sure.
      if (kept->looks_since_own >= own_looks_max) continue;
      const auto slot = only(unowned, [&](std::size_t at) { return may_own(*kept, working[at]); });
      if (slot == unowned.end()) continue;
      match(*kept, *slot);
      goes_on = true;
    }
    for (const std::size_t at : std::vector(unowned)) {
      if (!are_ours || working[at].is_shared) continue;
      const auto kept =
          only(unmatched, [&](const TrackedRequest* who) { return may_own(*who, working[at]); });
      if (kept == unmatched.end()) continue;
      match(**kept, at);
      goes_on = true;
    }
  }
  for (const std::size_t at : unowned) {
    const auto fits = [&](const TrackedRequest* who) { return may_own(*who, working[at]); };
    if (std::ranges::count_if(unmatched, fits) > 1) slots.share(at);
  }
  for (TrackedRequest* kept : unmatched) {
    const auto fits = [&](std::size_t at) { return may_own(*kept, working[at]); };
    kept->shared = static_cast<int>(std::ranges::count_if(unowned, fits));
    kept->sharers = static_cast<int>(unmatched.size());
  }
}

/// Its slot is one of several: it does what they all do, if each request has one. No counts.
void ServerWatch::State::hide_counts(TrackedRequest& kept) const {
  if (kept.shared == 0) return;
  const bool shows = kept.seen.pieces > 0 || kept.seen.prompt_tokens > 0;
  if (shows) return void(kept.held = evidence_of(kept, nullptr));
  int reading = 0, writing = 0;
  for (const auto& slot : slots.working())
    if (may_own(kept, slot)) ++(slot.writes() ? writing : reading);
  auto state = ServerState::working;
  if (kept.shared >= kept.sharers && reading == 0) state = ServerState::writing;
  if (kept.shared >= kept.sharers && writing == 0) state = ServerState::reading;
  kept.held = Evidence{.state = state};
}

void ServerWatch::State::give_matched(TrackedRequest& kept, bool by_totals) {
  const WorkingSlot& slot = slots.working()[*kept.match];
  if (slot.has_moved || slot.is_new) return moves(kept, evidence_of(kept, &slot), false);
  give_slot_that_stands(kept, &slot, {&kept});
  if (by_totals && kept.slot) moves(kept, evidence_of(kept, &*kept.slot), /*is_own=*/true);
}

/// S3: silent requests get the slots that no stream accounts for. Requests with a known slot get
/// theirs first. The others get moving slots, because the assignment may be wrong, and then slots
/// that stand still. The newest requests get none.
void ServerWatch::State::give_slots() {
  match_slots();
  const auto& working = slots.working();
  const auto moves_now = [](const WorkingSlot& slot) { return slot.has_moved || slot.is_new; };
  const auto moving = std::ranges::count_if(working, moves_now);
  const auto all = static_cast<std::int64_t>(working.size());
  // Totals may show what slots do not; slots of older builds do not report reading.
  const bool by_totals = totals_moved && moving == 0 && own == 0;
  auto to_move = std::max<std::int64_t>(moving - own, 0);
  auto to_stand = std::max<std::int64_t>(all - own - to_move, 0);
  // Unless another client uses the server too, tasks are numbered in the order of the requests.
  const auto slot_of = [&](const TrackedRequest& kept, bool that_moves) -> const WorkingSlot* {
    const auto rank = std::ranges::count_if(
        open, [&](const auto& other) { return other.second.seen.since < kept.seen.since; });
    if (all > static_cast<std::int64_t>(open.size()) || rank >= all) return nullptr;
    const auto& slot = working[static_cast<std::size_t>(rank)];
    return moves_now(slot) == that_moves ? &slot : nullptr;
  };
  auto silent = silent_ones();
  for (TrackedRequest* kept : silent) {
    if (!kept->match) continue;
    moves_now(working[*kept->match]) ? --to_move : --to_stand;
    give_matched(*kept, by_totals);
  }
  std::erase_if(silent, [](const TrackedRequest* kept) { return kept->match.has_value(); });
  for (TrackedRequest* kept : silent) {
    if (to_move-- > 0) {
      moves(*kept, evidence_of(*kept, slot_of(*kept, true)), /*is_own=*/false);
      hide_counts(*kept);
    } else if (to_stand-- > 0) {
      give_slot_that_stands(*kept, slot_of(*kept, false), silent);
      if (by_totals && kept->slot) {
        moves(*kept, evidence_of(*kept, &*kept->slot), /*is_own=*/true);
        hide_counts(*kept);
      }
    } else {
      kept->has_no_slot = true;
      // While a batch runs, no request is given one.
      if (working.empty() || slots.has_moved()) extend(kept->slotless);
    }
  }
}

/// `likely`: by the order of arrival; null: unknown.
void ServerWatch::State::give_slot_that_stands(TrackedRequest& kept, const WorkingSlot* likely,
                                               const std::vector<TrackedRequest*>& silent) {
  kept.slotless = begun();
  const auto may_stand = [](const TrackedRequest& who, const WorkingSlot& slot) {
    return may_own(who, slot) && !slot.has_moved && !slot.is_new;
  };
  if (likely == nullptr || !may_stand(kept, *likely)) {
    const auto fits = [&](const WorkingSlot& slot) { return may_stand(kept, slot); };
    const auto found = std::ranges::find_if(slots.working(), fits);
    if (found == slots.working().end()) return;
    likely = &*found;
  }
  kept.slot = *likely;
  kept.owns_slot = std::ranges::count_if(silent, [&](const TrackedRequest* who) {
                     return may_stand(*who, *likely);
                   }) == 1;
}

/// S4, without slots: movement of other clients is not ours.
void ServerWatch::State::give_totals() {
  const auto silent = silent_ones();
  if (!totals_moved) return;
  const auto waiting = std::min(queued.value_or(0), static_cast<std::int64_t>(silent.size()));
  auto served = static_cast<std::int64_t>(silent.size()) - waiting;
  if (running) served = std::min(served, *running - own);
  if (!running && own > 0) served = 0;
  for (TrackedRequest* kept : silent) {
    if (served-- <= 0) return;
    moves(*kept, {.state = ServerState::working}, /*is_own=*/false);
  }
}

}  // namespace watchdog
