#include "server/server_evidence.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "server/process_sign.h"
#include "server/slot_history.h"
#include "text/figures.h"

namespace watchdog {
namespace {

/// A sample that is later than usual by this factor says more about the observer than the server.
constexpr int late_factor = 4;
/// Reading a prompt takes some MiB now and then, and what is kept of an old one may take hundreds
/// at once. A loaded model comes fast, is large, and is more than a quarter of what is there.
constexpr std::int64_t loading_min = 200 << 20, loading_min_a_second = 16 << 20;
constexpr int loading_parts = 4;
/// A stream that did not move for one look may only have been looked at too early.
constexpr int own_looks_max = 2;

Millis scaled(Millis time, double factor) {
  return Millis{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
}

/// Returns true if the value was known before and differs now; remembers it.
bool is_changed(std::optional<std::int64_t>& known, const std::optional<std::int64_t>& now,
                bool& fell) {
  if (!now) return false;
  const bool differs = known && *known != *now;
  fell = fell || (known && *now < *known);
  known = now;
  return differs;
}

std::string words_for(const Evidence& evidence) {
  const auto so_far =
      evidence.done > 0 ? ": " + counted_as(evidence.done, "token") + " so far" : std::string();
  if (evidence.state == ServerState::writing) return "the answer is written" + so_far;
  if (evidence.state != ServerState::reading)
    return "the server's totals of tokens rise, and nothing tells for whom";
  if (evidence.total == 0) return "the prompt is read" + so_far;
  return "the prompt is read: " + grouped(evidence.done) + " of " + grouped(evidence.total) +
         " tokens";
}

/// Looks in a row that showed the same.
struct Stretch {
  int looks = 0;
  Millis from{};  ///< When it began.
};

/// The memory of one request.
struct Kept {
  RequestSample seen{};
  int looks_since_own = 1'000;  ///< Since its own stream moved.
  bool is_writing = false;
  bool has_moved = false;          ///< So that the time until it moves again is a gap of its phase.
  std::optional<Evidence> held{};  ///< As of its latest movement.
  std::optional<WorkingSlot> slot{};  ///< One that stands still, and
  bool owns_slot = false;             ///< is surely its own.
  bool has_no_slot = false;
  std::optional<std::size_t> match{};  ///< By this look: the slot that can only be its own.
  int shared = 0, sharers = 0;         ///< Else: its possible slots; requests without a match.
  Stretch quiet{};
  Stretch slotless{};     ///< Looks without a slot at which the server could have given it one.
  int written_moves = 0;  ///< Of its own stream.
  bool is_new = true;     ///< No look before has seen it.
  bool was_gone = false;  ///< The server was, while it was open.
  bool is_lost = false;   ///< The server restarted since.
  // Of reading:
  std::optional<Millis> read_since{};  ///< When the stream first reported its progress,
  std::int64_t read_first = 0;         ///< and how far that was: what was cached took no time.
  Millis read_at{};                    ///< When it last advanced.
  int read_moves = 0;
};

std::string sharing_words(const Kept& kept) {
  return "the server works on " + std::to_string(kept.shared) + " of " +
         counted_as(kept.sharers, "request") + ", and does not tell on which";
}

/// For a request whose slot moves; the counts of its own stream come first.
Evidence evidence_of(const Kept& kept, const WorkingSlot* slot) {
  const auto& own = kept.seen;
  if (slot != nullptr ? slot->writes() : kept.is_writing)
    return {.state = ServerState::writing,
            .done = std::max(slot != nullptr ? *slot->seen.written : 0, own.pieces)};
  if (own.prompt_tokens > 0)
    return {.state = ServerState::reading, .done = own.prompt_read, .total = own.prompt_tokens};
  return {.state = ServerState::reading,
          .done = slot != nullptr ? slot->seen.prompt_read.value_or(0) : 0};
}

/// True if the slot's task may be that request's: it was not there before it, does what the
/// request's own stream shows, and has its parameters.
bool may_own(const Kept& kept, const WorkingSlot& slot) {
  const bool fits_stream = kept.seen.pieces == 0 || !slot.seen.written.has_value() || slot.writes();
  return kept.seen.since <= slot.first && fits_stream &&
         may_be_of(kept.seen.parameters, slot.seen.parameters);
}

}  // namespace

struct ServerWatch::State {
  HangThresholds limits;
  std::map<RequestId, Kept> open;
  std::optional<ServerSample> last;  ///< Without its slots.
  Millis gap{};                      ///< Between the latest two looks.
  Millis now{}, before{};            ///< All of it, by this look and by the one before.
  Stretch idle, still;               ///< Of the process; of all requests together.
  Stretch unanswered;                ///< Looks without an answer, and without a movement.
  std::int64_t loaded = 0;           ///< Bytes that came so fast since, and
  std::int64_t loaded_onto = 0;      ///< how many were there before.
  int idle_moves = 0;                ///< Looks in a row with movement and an idle process.
  SlotHistory slots;                 ///< As of the latest report, like the next ones.
  std::optional<std::int64_t> decodes, prompt_total, written_total, started, running, queued;
  int queue_looks = 0;                             ///< Since the latter two were reported.
  std::optional<Millis> reading_gap, writing_gap;  ///< The longest so far.

  // Of the look that is being taken:
  ProcessSign process;
  bool any_moved = false, totals_moved = false;
  bool has_slots = false;  ///< It shows them now.
  bool is_refused = false, is_answered = false, is_restarted = false, is_late = false;
  std::int64_t own = 0;  ///< Requests whose own streams move.

  void fold_sample(const ServerSample& sample);
  void fold_time(Instant at);
  void fold_process(const ServerSample& sample);
  void fold_growth(const ServerSample& sample);
  void fold_totals(const ServerSample& sample);
  void fold_slots(const ServerSample& sample);
  void fold_silence(const ServerSample& sample);
  void fold_own(Kept& kept, RequestSample sample);
  std::vector<Kept*> silent_ones();
  void match_slots();
  void give_slots();
  void give_matched(Kept& kept, bool by_totals);
  void hide_counts(Kept& kept) const;
  void give_slot_that_stands(Kept& kept, const WorkingSlot* likely,
                             const std::vector<Kept*>& silent);
  void give_totals();

  void extend(Stretch& run) const {
    if (run.looks++ == 0) run.from = before;
  }
  [[nodiscard]] bool is_seen() const { return process.does != ProcessSign::unseen; }
  [[nodiscard]] bool is_idle() const { return process.does == ProcessSign::idle; }
  [[nodiscard]] Stretch begun() const { return {.from = now}; }
  [[nodiscard]] Millis lasts(const Stretch& run) const { return now - run.from; }
  /// Returns true beyond the threshold, which is longer without a second, sure sign.
  [[nodiscard]] bool is_over(const Stretch& run, Millis time, bool sure) const {
    const int times = sure ? 1 : std::max(limits.remote_factor, 1);
    return run.looks >= limits.looks_min * times && lasts(run) >= time * times;
  }
  [[nodiscard]] Millis gap_of(bool writing) const {
    return (writing ? writing_gap : reading_gap).value_or(limits.gap_prior);
  }
  [[nodiscard]] Millis bound_of(Millis longest_gap) const {
    return scaled(longest_gap, limits.gap_factor);
  }
  [[nodiscard]] Millis bound_of(const Kept& kept) const {
    return bound_of(gap_of(kept.is_writing));
  }
  /// The server answers nothing, for longer than a request ever stood still.
  [[nodiscard]] bool is_unheard(Millis longest_gap) const {
    return unanswered.looks > 0 && lasts(unanswered) > longest_gap;
  }
  [[nodiscard]] bool is_held(const Kept& kept) const {
    return kept.held && !is_unheard(gap_of(kept.is_writing)) &&
           !is_over(kept.quiet, bound_of(kept), is_seen());
  }
  /// Each served request may need that long between two movements.
  [[nodiscard]] bool others_move() const {
    const auto longest = std::max(gap_of(true), gap_of(false));
    return any_moved || (!is_unheard(longest) && !is_over(still, bound_of(longest), is_seen()));
  }
  [[nodiscard]] bool waits_for_others(const Kept& kept) const;
  [[nodiscard]] bool shows_totals() const {
    return decodes || prompt_total || written_total || running || queued;
  }

  void moves(Kept& kept, const Evidence& to, bool is_own);
  void excuse(Kept& kept) const;
  [[nodiscard]] std::string sign_of_slot(const Kept& kept) const;
  [[nodiscard]] std::string sign_of_hang(const Kept& kept, const ServerSample& sample) const;
  [[nodiscard]] std::string silence_of(const Kept& kept) const;
  [[nodiscard]] std::string process_words() const;
  [[nodiscard]] Evidence with_estimate(const Kept& kept) const;
  void conclude(Kept& kept, const ServerSample& sample, ServerFinding& finding);
};

void ServerWatch::State::fold_time(Instant at) {
  const auto real = last ? std::max(at - last->at, Millis{}) : Millis{};
  before = now;
  // A late look counts as a usual one. Should they stay that rare, that is the usual gap.
  is_late = gap > Millis{} && real >= late_factor * gap;
  now += is_late ? gap : real;
  gap = real;
}

void ServerWatch::State::fold_process(const ServerSample& sample) {
  const auto does_before = process.does;
  process = last ? process_sign(*last, sample, limits) : ProcessSign{};
  fold_growth(sample);
  // An average over a long time without samples means little.
  if (is_late && is_idle()) process.does = does_before;
  if (idle_moves >= limits.idle_moves_max && is_idle()) process = {};
  is_idle() ? extend(idle) : void(idle = begun());
}

/// REQUIRES: `process` is of this look, and `last` of the one before.
void ServerWatch::State::fold_growth(const ServerSample& sample) {
  const auto elapsed = last ? std::max(sample.at - last->at, Millis{1}) : Millis{1};
  if (!last || process.growth * 1'000 < loading_min_a_second * elapsed.count()) {
    loaded = 0;
    return;
  }
  if (loaded == 0) loaded_onto = last->memory_bytes.value_or(0);
  loaded += process.growth;
}

void ServerWatch::State::fold_totals(const ServerSample& sample) {
  bool fell = false;
  totals_moved = is_changed(decodes, sample.decodes, fell);
  totals_moved = is_changed(prompt_total, sample.prompt_total, fell) || totals_moved;
  totals_moved = is_changed(written_total, sample.written_total, fell) || totals_moved;
  if (fell) totals_moved = false;  // they count from nothing again
  // Several servers behind one address take turns: only what is newer was started since.
  is_restarted = sample.started ? started && *sample.started > *started : fell && !started;
  if (sample.started) started = std::max(started.value_or(*sample.started), *sample.started);
  if (sample.running || sample.queued) {
    running = sample.running;
    queued = sample.queued;
    queue_looks = 0;
  } else if (++queue_looks > limits.looks_min) {
    running.reset();
    queued.reset();
  }
}

void ServerWatch::State::fold_slots(const ServerSample& sample) {
  has_slots = sample.slots == Asked::answered;
  if (!has_slots) return;
  slots.add(sample.slot, sample.at, now);
  any_moved = any_moved || slots.has_news();
  for (const WorkingSlot& slot : slots.working()) {
    if (!slot.has_moved || slot.moves < 2) continue;
    auto& longest = slot.writes() ? writing_gap : reading_gap;
    longest = std::max(longest.value_or(Millis{}), slot.gap);
  }
}

/// Brings what is known of the server up to this look.
void ServerWatch::State::fold_sample(const ServerSample& sample) {
  fold_time(sample.at);
  fold_process(sample);
  const auto any = [&](Asked what) {
    return sample.reachable == what || sample.slots == what || sample.metrics == what;
  };
  is_refused = any(Asked::refused) || sample.process_gone;
  is_answered = !is_refused && any(Asked::answered);
  fold_totals(sample);
  any_moved = totals_moved;
  fold_slots(sample);
  last = sample;
  last->slot.clear();
}

/// `is_own`: by what it shows itself, so that the time since it last did is its pace.
void ServerWatch::State::moves(Kept& kept, const Evidence& to, bool is_own) {
  const bool is_writing = to.state == ServerState::writing;
  const bool shows_phase = is_writing || to.state == ServerState::reading;
  if (is_own && kept.has_moved && shows_phase && kept.is_writing == is_writing) {
    auto& longest = is_writing ? writing_gap : reading_gap;
    longest = std::max(longest.value_or(Millis{}), lasts(kept.quiet));
  }
  kept.has_moved = is_own && shows_phase;
  if (shows_phase) kept.is_writing = is_writing;
  kept.held = to;
  kept.quiet = kept.slotless = begun();
  kept.is_lost = kept.was_gone = false;
}

/// It does not move now, and need not.
void ServerWatch::State::excuse(Kept& kept) const {
  kept.has_moved = false;
  kept.held.reset();
  kept.quiet = kept.slotless = begun();
}

/// S1 and S2: what its own connection shows.
void ServerWatch::State::fold_own(Kept& kept, RequestSample sample) {
  sample.prompt_read = std::max<std::int64_t>(sample.prompt_read, 0);
  const bool reads = sample.prompt_read > kept.seen.prompt_read;
  const bool has_moved = reads || sample.pieces > kept.seen.pieces;
  const bool in_prompt = sample.prompt_read < sample.prompt_tokens || sample.pieces == 0;
  kept.seen = sample;
  if (sample.prompt_tokens > 0 && !kept.read_since) {
    kept.read_since = now;
    kept.read_first = sample.prompt_read;
  } else if (reads) {
    kept.read_at = now;
    ++kept.read_moves;
  }
  kept.looks_since_own = has_moved ? 0 : std::min(kept.looks_since_own + 1, 1'000);
  if (kept.looks_since_own < own_looks_max) ++own;
  if (!has_moved) return;
  any_moved = true;
  if (in_prompt) {
    moves(
        kept,
        {.state = ServerState::reading, .done = sample.prompt_read, .total = sample.prompt_tokens},
        /*is_own=*/true);
  } else {
    ++kept.written_moves;
    moves(kept, {.state = ServerState::writing, .done = sample.pieces}, /*is_own=*/true);
  }
}

/// After all that moves at this look is known.
void ServerWatch::State::fold_silence(const ServerSample& sample) {
  // A busy inference loop may be long in coming to a question.
  const bool is_silent =
      sample.stopped != 0 || sample.reachable == Asked::waiting || sample.slots == Asked::waiting;
  is_silent && !any_moved && process.does != ProcessSign::busy ? extend(unanswered)
                                                               : void(unanswered = begun());
}

/// Returns the requests whose own streams report nothing now; the oldest first.
std::vector<Kept*> ServerWatch::State::silent_ones() {
  std::vector<Kept*> silent;
  for (auto& [request, kept] : open) {
    kept.slot.reset();
    kept.has_no_slot = kept.owns_slot = false;
    if (kept.looks_since_own >= own_looks_max) silent.push_back(&kept);
  }
  std::ranges::stable_sort(silent, {}, [](const Kept* kept) { return kept->seen.since; });
  return silent;
}

/// Finds the slots that can only be one request's. While another client uses the server too, that
/// is known only for moving streams.
void ServerWatch::State::match_slots() {
  const auto& working = slots.working();
  const bool are_ours = working.size() <= open.size();
  std::vector<Kept*> unmatched;
  for (auto& [request, kept] : open) {
    kept.match.reset();
    kept.shared = kept.sharers = 0;
    unmatched.push_back(&kept);
  }
  std::vector<std::size_t> unowned(working.size());
  std::iota(unowned.begin(), unowned.end(), std::size_t{0});
  const auto match = [&](Kept& kept, std::size_t slot) {
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
    for (Kept* kept : std::vector(unmatched)) {
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
          only(unmatched, [&](const Kept* who) { return may_own(*who, working[at]); });
      if (kept == unmatched.end()) continue;
      match(**kept, at);
      goes_on = true;
    }
  }
  for (const std::size_t at : unowned) {
    const auto fits = [&](const Kept* who) { return may_own(*who, working[at]); };
    if (std::ranges::count_if(unmatched, fits) > 1) slots.share(at);
  }
  for (Kept* kept : unmatched) {
    const auto fits = [&](std::size_t at) { return may_own(*kept, working[at]); };
    kept->shared = static_cast<int>(std::ranges::count_if(unowned, fits));
    kept->sharers = static_cast<int>(unmatched.size());
  }
}

/// Its slot is one of several: it does what they all do, if each request has one. No counts.
void ServerWatch::State::hide_counts(Kept& kept) const {
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

void ServerWatch::State::give_matched(Kept& kept, bool by_totals) {
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
  const auto slot_of = [&](const Kept& kept, bool that_moves) -> const WorkingSlot* {
    const auto rank = std::ranges::count_if(
        open, [&](const auto& other) { return other.second.seen.since < kept.seen.since; });
    if (all > static_cast<std::int64_t>(open.size()) || rank >= all) return nullptr;
    const auto& slot = working[static_cast<std::size_t>(rank)];
    return moves_now(slot) == that_moves ? &slot : nullptr;
  };
  auto silent = silent_ones();
  for (Kept* kept : silent) {
    if (!kept->match) continue;
    moves_now(working[*kept->match]) ? --to_move : --to_stand;
    give_matched(*kept, by_totals);
  }
  std::erase_if(silent, [](const Kept* kept) { return kept->match.has_value(); });
  for (Kept* kept : silent) {
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
void ServerWatch::State::give_slot_that_stands(Kept& kept, const WorkingSlot* likely,
                                               const std::vector<Kept*>& silent) {
  kept.slotless = begun();
  const auto may_stand = [](const Kept& who, const WorkingSlot& slot) {
    return may_own(who, slot) && !slot.has_moved && !slot.is_new;
  };
  if (likely == nullptr || !may_stand(kept, *likely)) {
    const auto fits = [&](const WorkingSlot& slot) { return may_stand(kept, slot); };
    const auto found = std::ranges::find_if(slots.working(), fits);
    if (found == slots.working().end()) return;
    likely = &*found;
  }
  kept.slot = *likely;
  kept.owns_slot =
      std::ranges::count_if(silent, [&](const Kept* who) { return may_stand(*who, *likely); }) == 1;
}

/// S4, without slots: movement of other clients is not ours.
void ServerWatch::State::give_totals() {
  const auto silent = silent_ones();
  if (!totals_moved) return;
  const auto waiting = std::min(queued.value_or(0), static_cast<std::int64_t>(silent.size()));
  auto served = static_cast<std::int64_t>(silent.size()) - waiting;
  if (running) served = std::min(served, *running - own);
  if (!running && own > 0) served = 0;
  for (Kept* kept : silent) {
    if (served-- <= 0) return;
    moves(*kept, {.state = ServerState::working}, /*is_own=*/false);
  }
}

/// S5: queued requests are in no slot.
bool ServerWatch::State::waits_for_others(const Kept& kept) const {
  if (!others_move()) return false;
  if (has_slots) return kept.has_no_slot && (queued.value_or(0) > 0 || !slots.has_free());
  return queued.value_or(0) > 0 && !kept.held;
}

std::string ServerWatch::State::process_words() const {
  return is_idle() ? "its process has done nothing for " + span_of(lasts(idle)) : in_words(process);
}

std::string ServerWatch::State::silence_of(const Kept& kept) const {
  const auto& longest = kept.is_writing ? writing_gap : reading_gap;
  const auto lasted = lasts(kept.quiet);
  return std::string(kept.is_writing ? "no token" : "no movement") +
         (lasted < Millis{1'000} ? " yet" : " for " + span_of(lasted)) +
         (longest ? " (longest gap before: " + span_of(*longest) + ")" : "");
}

/// Returns the sign that its slot shows.
std::string ServerWatch::State::sign_of_slot(const Kept& kept) const {
  const WorkingSlot& slot = *kept.slot;
  const auto where = "slot " + std::to_string(slot.seen.id);
  const auto stands_for = [&](Millis time) {
    return is_over({.looks = slot.looks, .from = slot.changed}, time, is_seen());
  };
  const auto looks = ", " + counted_as(slot.looks, "look") + " in a row";
  // Each batch takes a token of every answer along, so that the others' work explains nothing.
  if (kept.owns_slot && slot.writes() && slot.looks_of_others >= limits.looks_min &&
      stands_for(bound_of(kept)))
    return where + " stands still while others move" + looks;
  if (is_seen()) return {};
  // A batch may take as long as the prompts in it: what each slot has shown itself bounds it.
  auto longest = gap_of(kept.is_writing);
  for (const WorkingSlot& other : slots.working()) {
    if (!other.writes() && other.moves < 2) return {};
    longest = std::max(longest, other.gap);
  }
  // While others move, it may not be its own; and their prompts fill the batches until they are
  // read.
  if (lasts(still) < bound_of(longest)) return {};
  return stands_for(bound_of(longest)) ? where + " says that it works, and stands still" + looks
                                       : std::string();
}

/// The second sign, the first being that the request does not move; empty: there is none.
std::string ServerWatch::State::sign_of_hang(const Kept& kept, const ServerSample& sample) const {
  const auto no_slot = "swallowed: no slot works on it and nothing is queued, " +
                       counted_as(kept.slotless.looks, "look") + " in a row";
  const bool has_no_slot =
      has_slots && slots.has_free() && kept.has_no_slot && queued.value_or(0) == 0;
  if (has_no_slot && is_over(kept.slotless, limits.gap_prior, is_idle()) &&
      is_over(kept.quiet, limits.gap_prior, is_idle()))
    return no_slot;
  const auto bound = bound_of(kept);
  if (!is_over(kept.quiet, bound, is_seen())) return {};
  if (is_idle() && is_over(idle, bound, true)) {
    if (sample.slots == Asked::waiting)
      return "/slots is unanswered for " + span_of(sample.slots_waiting) + ", and " +
             process_words();
    if (has_no_slot) return no_slot;
    if (sample.is_loading) return "it says that it loads its model, and " + process_words();
    return process_words();
  }
  if (has_slots && kept.slot) return sign_of_slot(kept);
  // A prompt may be counted when it is read whole, and anybody's may be read now.
  const bool is_known = kept.written_moves >= 2 && running.value_or(0) == 1;
  if (!is_seen() && !has_slots && sample.slots != Asked::waiting && is_known &&
      is_over(still, bound, false))
    return "the server counts " + counted_as(*running, "request") +
           " that it works on, and its totals of tokens stand still";
  return {};
}

Evidence ServerWatch::State::with_estimate(const Kept& kept) const {
  Evidence held = *kept.held;
  const auto read = held.done - kept.read_first;
  if (held.state != ServerState::reading || held.total <= held.done || !kept.read_since ||
      kept.read_moves < 2 || read <= 0)
    return held;
  // Nothing is known of what the batch that runs has read, so nothing of it is taken off; and one
  // that takes longer than any before may take any time.
  if (now - kept.read_at > gap_of(false)) return held;
  const auto took = static_cast<double>((kept.read_at - *kept.read_since).count());
  const auto left = took / static_cast<double>(read) * static_cast<double>(held.total - held.done);
  if (left < 1e12) held.left = Millis{static_cast<std::int64_t>(left)};  // else no estimate
  return held;
}

void ServerWatch::State::conclude(Kept& kept, const ServerSample& sample, ServerFinding& finding) {
  const auto is = [&](ServerState state, std::string why) {
    finding.evidence.state = state;
    finding.why = std::move(why);
  };
  const bool moves_now = kept.held && kept.quiet.looks == 0;
  // It may have happened before the previous sample.
  kept.is_lost = kept.is_lost || (is_restarted && !kept.is_new);
  if (!moves_now) {
    if (is_refused) {
      kept.was_gone = true;
      return is(ServerState::gone, sample.process_gone ? "the server's process is gone"
                                                       : "the server accepts no connections");
    }
    kept.is_lost = kept.is_lost || (kept.was_gone && is_answered);
    if (kept.is_lost)
      return is(ServerState::restarted, "the server was restarted while the request was open");
    if (kept.was_gone) return is(ServerState::gone, "the server was gone, and does not answer yet");
  }
  if (!moves_now && sample.stopped != 0)
    return is(ServerState::hung,
              "the server's process is stopped (state T): continue it with "
              "\"kill -CONT " +
                  std::to_string(sample.stopped) + "\"");
  const auto sign = moves_now ? std::string() : sign_of_hang(kept, sample);
  if (!sign.empty())
    return is(ServerState::hung,
              sign.starts_with("swallowed") ? sign : silence_of(kept) + ", and " + sign);
  if (!moves_now && (sample.is_loading || sample.is_sleeping)) {
    if (!is_idle()) excuse(kept);
    return is(ServerState::loading, sample.is_loading
                                        ? "the server loads its model"
                                        : "the server had unloaded its model, and has to wake up");
  }
  if (!moves_now && waits_for_others(kept)) {
    const bool is_sure = kept.shared == 0;
    excuse(kept);
    if (!is_sure) return is(ServerState::working, sharing_words(kept));
    return is(ServerState::queued,
              queued.value_or(0) > 0
                  ? "it waits for its turn: " + counted_as(*queued, "request") +
                        (*queued == 1 ? " is" : " are") + " queued, and others move"
                  : "it waits for its turn: the server works for others");
  }
  if (moves_now || is_held(kept)) {
    finding.evidence = with_estimate(kept);
    const bool is_shared = has_slots && kept.shared > 0 && kept.looks_since_own >= own_looks_max;
    finding.why = is_shared && finding.evidence.state == ServerState::working
                      ? sharing_words(kept)
                      : words_for(finding.evidence);
    if (kept.quiet.looks > 1) finding.why += ", " + silence_of(kept);
    return;
  }
  if (process.does == ProcessSign::busy) {
    const bool is_model = loaded >= std::max(loading_min, loaded_onto / loading_parts);
    if (is_model && !has_slots && !kept.seen.pieces && !decodes)
      return is(ServerState::loading,
                "the server's process loads its model: " + grouped(loaded >> 20) + " MiB so far");
    return is(ServerState::working,
              (sample.slots == Asked::waiting
                   ? "/slots is unanswered for " + span_of(sample.slots_waiting) + ", and "
                   : "nothing tells how far it is, and ") +
                  process_words());
  }
  const bool shows_nothing = !is_seen() && !has_slots && !shows_totals() && unanswered.looks == 0;
  if (shows_nothing && !kept.has_moved)
    return is(ServerState::unknown, "the server tells nothing of what it does");
  is(ServerState::quiet, silence_of(kept) + "; " +
                             (unanswered.looks > 0 ? "the server has not answered for " +
                                                         span_of(lasts(unanswered)) + "; "
                                                   : "") +
                             process_words());
}

ServerWatch::ServerWatch(HangThresholds limits) : state_(std::make_unique<State>()) {
  state_->limits = limits;
}
ServerWatch::~ServerWatch() = default;
ServerWatch::ServerWatch(ServerWatch&&) noexcept = default;
ServerWatch& ServerWatch::operator=(ServerWatch&&) noexcept = default;

std::vector<ServerFinding> ServerWatch::look(const ServerSample& sample,
                                             const std::map<RequestId, RequestSample>& open) {
  auto& state = *state_;
  std::erase_if(state.open, [&](const auto& kept) { return !open.contains(kept.first); });
  state.fold_sample(sample);
  state.own = 0;
  for (const auto& [request, shows] : open) {
    const auto [place, is_new] = state.open.try_emplace(request);
    Kept& kept = place->second;
    kept.is_new = is_new;
    if (is_new) {
      kept.quiet = kept.slotless = state.begun();
      // It was sent before this look.
      kept.quiet.from -= std::clamp(sample.at - shows.since, Millis{}, state.gap);
    } else {
      state.extend(kept.quiet);
    }
    state.fold_own(kept, shows);
  }
  if (state.has_slots) {
    state.give_slots();
  } else {
    state.give_totals();
  }
  state.any_moved ? void(state.still = state.begun()) : state.extend(state.still);
  state.fold_silence(sample);
  if (state.any_moved && state.is_seen())
    state.idle_moves = state.is_idle() ? state.idle_moves + 1 : 0;
  std::vector<ServerFinding> findings;
  for (auto& [request, kept] : state.open)
    state.conclude(kept, sample, findings.emplace_back(ServerFinding{.request = request}));
  return findings;
}

}  // namespace watchdog
