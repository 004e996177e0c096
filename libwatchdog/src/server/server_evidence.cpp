// Feeds a server's signs into its state, and concludes for each request whether it moves, waits or
// hangs. Each sign is weighed where it comes in. A request hangs only by two independent signs.
// slot_assignment.cpp says which slot works on which request.
#include "server/server_evidence.h"

#include <algorithm>
#include <utility>

#include "server/server_watch_state.h"
#include "text/figures.h"

namespace watchdog {
namespace {

/// A sample that is later than usual by this factor says more about the observer than the server.
constexpr int late_factor = 4;
/// Reading a prompt takes some MiB now and then, and what is kept of an old one may take hundreds
/// at once. A loaded model comes fast, is large, and is more than a quarter of what is there.
constexpr std::int64_t loading_min = 200 << 20, loading_min_a_second = 16 << 20;
constexpr int loading_parts = 4;
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

std::string sharing_words(const TrackedRequest& kept) {
  return "the server works on " + std::to_string(kept.shared) + " of " +
         counted_as(kept.sharers, "request") + ", and does not tell on which";
}

/// The state of the requests before it.
std::string words_for_queue(std::int64_t queued, bool is_served, const Silence& all) {
  const auto still = all.lasts(all.still);
  const auto others = all.any_moved           ? std::string("others move")
                      : !is_served            ? std::string("the server works on none")
                      : still < Millis{1'000} ? std::string("others have not moved yet")
                                              : "others have not moved for " + span_of(still);
  if (queued == 0) return all.any_moved ? "the server works for others" : others;
  return counted_as(queued, "request") + (queued == 1 ? " is" : " are") + " queued, and " + others;
}

}  // namespace

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
void ServerWatch::State::moves(TrackedRequest& kept, const Evidence& to, bool is_own) {
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
void ServerWatch::State::excuse(TrackedRequest& kept) const {
  kept.has_moved = false;
  kept.held.reset();
  kept.quiet = kept.slotless = begun();
}

/// S1 and S2: what its own connection shows.
void ServerWatch::State::fold_own(TrackedRequest& kept, RequestSample sample) {
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

/// S5: queued requests are in no slot.
bool ServerWatch::State::waits_for_others(const TrackedRequest& kept) const {
  if (!others_move()) return false;
  if (has_slots) return kept.has_no_slot && (queued.value_or(0) > 0 || !slots.has_free());
  return queued.value_or(0) > 0 && !kept.held;
}

std::string ServerWatch::State::process_words() const {
  return is_idle() ? "its process has done nothing for " + span_of(lasts(idle)) : in_words(process);
}

std::string ServerWatch::State::silence_of(const TrackedRequest& kept) const {
  const auto& longest = kept.is_writing ? writing_gap : reading_gap;
  const auto lasted = lasts(kept.quiet);
  return std::string(kept.is_writing ? "no token" : "no movement") +
         (lasted < Millis{1'000} ? " yet" : " for " + span_of(lasted)) +
         (longest ? " (longest gap before: " + span_of(*longest) + ")" : "");
}

/// Returns the sign that its slot shows.
std::string ServerWatch::State::sign_of_slot(const TrackedRequest& kept) const {
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
std::string ServerWatch::State::sign_of_hang(const TrackedRequest& kept,
                                             const ServerSample& sample) const {
  const auto no_slot = "swallowed: no slot works on it and nothing is queued, " +
                       counted_as(kept.slotless.looks, "look") + " in a row";
  const bool has_no_slot =
      has_slots && slots.has_free() && kept.has_no_slot && queued.value_or(0) == 0;
  if (has_no_slot && is_over(kept.slotless, limits.gap_prior, is_idle()) &&
      is_over(kept.quiet, limits.gap_prior, is_idle()))
    return no_slot;
  const auto bound = bound_of(kept);
  const auto short_bound = short_bound_of(kept);
  if (is_over(unserved, short_bound, true) && is_over(kept.quiet, short_bound, true))
    return "the server counts " + counted_as(queued.value_or(0), "queued request") +
           ", and works on none";
  // A GPU that is not seen may be reading the prompt while the process waits for it.
  const auto idle_bound = sample.gpu_percent ? short_bound : bound;
  if (is_idle() && is_over(idle, idle_bound, true) && is_over(kept.quiet, idle_bound, true)) {
    if (sample.slots == Asked::waiting)
      return "/slots is unanswered for " + span_of(sample.slots_waiting) + ", and " +
             process_words();
    if (has_no_slot) return no_slot;
    if (sample.is_loading) return "it says that it loads its model, and " + process_words();
    return process_words();
  }
  if (!is_over(kept.quiet, bound, is_seen())) return {};
  if (has_slots && kept.slot) return sign_of_slot(kept);
  // A prompt may be counted when it is read whole, and anybody's may be read now.
  const bool is_known = kept.written_moves >= 2 && running.value_or(0) == 1;
  if (!is_seen() && !has_slots && sample.slots != Asked::waiting && is_known &&
      is_over(still, bound, false))
    return "the server counts " + counted_as(*running, "request") +
           " that it works on, and its totals of tokens stand still";
  return {};
}

Evidence ServerWatch::State::with_estimate(const TrackedRequest& kept) const {
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

void ServerWatch::State::conclude(TrackedRequest& kept, const ServerSample& sample,
                                  ServerFinding& finding) {
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
    // A queue that nobody serves excuses no silence.
    if (any_moved || running.value_or(1) > 0) excuse(kept);
    if (!is_sure) return is(ServerState::working, sharing_words(kept));
    return is(ServerState::queued,
              "it waits for its turn: " + words_for_queue(queued.value_or(0), running != 0, *this));
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
    TrackedRequest& kept = place->second;
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
  // A busy process may prepare to serve them.
  const bool may_begin = state.any_moved || sample.is_loading || sample.is_sleeping ||
                         state.process.does == ProcessSign::busy;
  const bool is_unserved = state.queued.value_or(0) > 0 && state.running == 0 && !may_begin;
  is_unserved ? state.extend(state.unserved) : void(state.unserved = state.begun());
  if (state.any_moved && state.is_seen())
    state.idle_moves = state.is_idle() ? state.idle_moves + 1 : 0;
  std::vector<ServerFinding> findings;
  for (auto& [request, kept] : state.open)
    state.conclude(kept, sample, findings.emplace_back(ServerFinding{.request = request}));
  return findings;
}

}  // namespace watchdog
