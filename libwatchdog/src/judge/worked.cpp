#include "judge/worked.h"

#include <algorithm>

namespace watchdog {
namespace {

/// The observer looks at least this often, so an absence may begin that much later than it says.
constexpr Millis edge{1'000};

Instant begin_of(const Absence& absence) {
  return absence.back - absence.gap;
}

/// The part of an absence that lies between two reports. If the session reported within the
/// absence, it worked then: only the observer was away.
Millis pause_in(const Absence& absence, Instant from, Instant to) {
  if (from > begin_of(absence) + edge || to <= begin_of(absence)) return Millis{0};
  return std::max(std::min(to, absence.back) - std::max(from, begin_of(absence)), Millis{0});
}

/// The newest gap without the absences that are known by now. Where in a row of heartbeats its
/// longest gap was is not known; it held an absence if it was as long.
Millis without_absences(const History& history, const NewestGap& newest) {
  auto gap = newest.longest;
  for (const auto& absence : *history.absences) {
    const auto pause = pause_in(absence, newest.from, newest.to);
    if (gap + 2 * edge >= pause) gap = std::max(gap - pause, Millis{0});
  }
  return gap;
}

/// Returns nothing if what is left of the time is shorter than the edges of an absence are
/// uncertain.
std::optional<Millis> worked_between(const History& history, Instant from, Instant to) noexcept {
  Millis paused{0};
  for (const auto& absence : *history.absences) paused += pause_in(absence, from, to);
  const auto worked = to - from - paused;
  if (paused.count() > 0 && worked < edge) return std::nullopt;
  return std::max(worked, Millis{0});
}

bool is_held_up(const History& history, const OpenCall& call) noexcept {
  const auto& notes = *history.notes;
  if (notes.paused_at == Instant{} || call.since > notes.paused_at) return false;
  return notes.wait_call == 0 || notes.wait_call == call.seq;
}

}  // namespace

void begin_pause(History& history, Instant now) {
  if (history.lifecycle == Lifecycle::running) history.notes.edit().paused_at = now;
}

void end_pause(History& history, Instant now) {
  const auto paused_at = history.notes->paused_at;
  if (paused_at == Instant{}) {  // a rest, or a wait that began in it
    if (history.lifecycle != Lifecycle::running) history.pace_from = now;
    return;
  }
  const auto waited = std::max(now - paused_at, Millis{0});
  if (history.pace_from <= paused_at) history.pace_from += waited;
  if (!history.open_calls->empty()) {
    for (auto& call : history.open_calls.edit())
      if (is_held_up(history, call)) call.notes.edit().waited += waited;
  }
  history.notes.edit().paused_at = Instant{};
}

std::optional<Millis> worked_since_pace(const History& history, Instant now) noexcept {
  const bool rests =
      history.lifecycle != Lifecycle::running && history.notes->paused_at == Instant{};
  // The first change has nothing before it that it could be measured from.
  if (rests || history.state_changes == 0) return std::nullopt;
  const auto paused_at = history.notes->paused_at;
  return worked_between(history, history.pace_from, paused_at == Instant{} ? now : paused_at);
}

std::optional<Millis> worked_in(const History& history, const OpenCall& call,
                                Instant now) noexcept {
  // When the person answered is not known.
  if (is_held_up(history, call)) return std::nullopt;
  return worked_between(history, call.worked_from(), now);
}

void learn_gaps(History& history, const Heartbeats& beats, std::int64_t periodic) {
  if (periodic <= 0) return;
  auto& newest = history.newest_gap;
  if (newest.count > 0) history.gaps.add(without_absences(history, newest), newest.count);
  const bool follows = history.periodic_beats > 0 && history.last_periodic != Instant{};
  newest = {.from = follows ? history.last_periodic : beats.first,
            .to = beats.last,
            .longest = follows ? beats.first - history.last_periodic : Millis{0},
            .count = (follows ? 1 : 0) + beats.count - 1};
  if (beats.count > 1) newest.longest = std::max(newest.longest, beats.max_gap);
  history.periodic_beats =
      static_cast<std::uint8_t>(std::min<std::int64_t>(history.periodic_beats + periodic, 2));
  history.last_periodic = beats.last;
}

void forget_gap(History& history) noexcept {
  history.last_periodic = Instant{};
}

Millis longest_usual_gap(const History& history) noexcept {
  return std::max(history.gaps.longest(), without_absences(history, history.newest_gap));
}

}  // namespace watchdog
