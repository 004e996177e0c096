/// \file
/// The state of a `ServerWatch`: what it knows of the server and of each open request. Its
/// functions are in server_evidence.cpp and slot_assignment.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/process_sign.h"
#include "server/server_evidence.h"
#include "server/slot_history.h"

namespace watchdog {

/// A stream that did not move for one look may only have been looked at too early.
inline constexpr int own_looks_max = 2;

[[nodiscard]] inline Millis scaled(Millis time, double factor) {
  return Millis{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
}

/// Looks in a row that showed the same.
struct LookRun {
  int looks = 0;
  Millis from{};  ///< When it began.
};

/// The memory of one request.
struct TrackedRequest {
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
  LookRun quiet{};
  LookRun slotless{};     ///< Looks without a slot at which the server could have given it one.
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

/// Returns the evidence for a request whose slot moves, or is null; the counts of its own stream
/// come first.
[[nodiscard]] Evidence evidence_of(const TrackedRequest& kept, const WorkingSlot* slot);

/// How long the server and its requests have been still, and how long is too long.
struct Silence {
  HangThresholds limits;
  Millis now{}, before{};  ///< All of the time looked at, by this look and by the one before.
  LookRun idle, still;     ///< Of the process; of all requests together.
  LookRun unserved;        ///< Requests are queued, none is in work, and nothing prepares for them.
  LookRun unanswered;      ///< Looks without an answer, and without a movement.
  std::optional<Millis> reading_gap, writing_gap;  ///< Between two movements, the longest so far.
  // Of the look that is being taken:
  ProcessSign process;
  bool any_moved = false;

  void extend(LookRun& run) const {
    if (run.looks++ == 0) run.from = before;
  }
  [[nodiscard]] bool is_seen() const { return process.does != ProcessSign::unseen; }
  [[nodiscard]] bool is_idle() const { return process.does == ProcessSign::idle; }
  [[nodiscard]] LookRun begun() const { return {.from = now}; }
  [[nodiscard]] Millis lasts(const LookRun& run) const { return now - run.from; }
  /// Returns true beyond the threshold, which is longer without a second, sure sign.
  [[nodiscard]] bool is_over(const LookRun& run, Millis time, bool sure) const {
    const int times = sure ? 1 : std::max(limits.remote_factor, 1);
    return run.looks >= limits.looks_min * times && lasts(run) >= time * times;
  }
  [[nodiscard]] Millis gap_of(bool writing) const {
    return (writing ? writing_gap : reading_gap).value_or(limits.gap_prior);
  }
  [[nodiscard]] Millis bound_of(Millis longest_gap) const {
    return scaled(longest_gap, limits.gap_factor);
  }
  [[nodiscard]] Millis bound_of(const TrackedRequest& kept) const {
    return bound_of(gap_of(kept.is_writing));
  }
  /// As `bound_of`, with a sign that nobody works on the request, so that its phase does not
  /// matter: two minutes suffice where all gaps before were short.
  [[nodiscard]] Millis short_bound_of(const TrackedRequest& kept) const {
    constexpr Millis short_min{120'000};
    if (!writing_gap && !reading_gap) return bound_of(kept);
    const auto longest = std::max(writing_gap.value_or(Millis{}), reading_gap.value_or(Millis{}));
    return std::min(bound_of(kept), std::max(short_min, bound_of(longest)));
  }
  /// The server answers nothing, for longer than a request ever stood still.
  [[nodiscard]] bool is_unheard(Millis longest_gap) const {
    return unanswered.looks > 0 && lasts(unanswered) > longest_gap;
  }
  [[nodiscard]] bool is_held(const TrackedRequest& kept) const {
    return kept.held && !is_unheard(gap_of(kept.is_writing)) &&
           !is_over(kept.quiet, bound_of(kept), is_seen());
  }
  /// Each served request may need that long between two movements.
  [[nodiscard]] bool others_move() const {
    const auto longest = std::max(gap_of(true), gap_of(false));
    return any_moved || (!is_unheard(longest) && !is_over(still, bound_of(longest), is_seen()));
  }
};

struct ServerWatch::State : Silence {
  std::map<RequestId, TrackedRequest> open;
  std::optional<ServerSample> last;  ///< Without its slots.
  Millis gap{};                      ///< Between the latest two looks.
  std::int64_t loaded = 0;           ///< Bytes that came so fast since, and
  std::int64_t loaded_onto = 0;      ///< how many were there before.
  int idle_moves = 0;                ///< Looks in a row with movement and an idle process.
  SlotHistory slots;                 ///< As of the latest report, like the next ones.
  std::optional<std::int64_t> decodes, prompt_total, written_total, started, running, queued;
  int queue_looks = 0;  ///< Since the latter two were reported.

  // Of the look that is being taken:
  bool totals_moved = false;
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
  void fold_own(TrackedRequest& kept, RequestSample sample);
  std::vector<TrackedRequest*> silent_ones();
  void match_slots();
  void give_slots();
  void give_matched(TrackedRequest& kept, bool by_totals);
  void hide_counts(TrackedRequest& kept) const;
  void give_slot_that_stands(TrackedRequest& kept, const WorkingSlot* likely,
                             const std::vector<TrackedRequest*>& silent);
  void give_totals();

  [[nodiscard]] bool waits_for_others(const TrackedRequest& kept) const;
  [[nodiscard]] bool shows_totals() const {
    return decodes || prompt_total || written_total || running || queued;
  }

  void moves(TrackedRequest& kept, const Evidence& to, bool is_own);
  void excuse(TrackedRequest& kept) const;
  [[nodiscard]] std::string sign_of_slot(const TrackedRequest& kept) const;
  [[nodiscard]] std::string sign_of_hang(const TrackedRequest& kept,
                                         const ServerSample& sample) const;
  [[nodiscard]] std::string silence_of(const TrackedRequest& kept) const;
  [[nodiscard]] std::string process_words() const;
  [[nodiscard]] Evidence with_estimate(const TrackedRequest& kept) const;
  void conclude(TrackedRequest& kept, const ServerSample& sample, ServerFinding& finding);
};

}  // namespace watchdog
