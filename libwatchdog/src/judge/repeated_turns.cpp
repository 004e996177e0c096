// Counts what comes again from turn to turn: stops that are refused, requests that were answered
// before, and turns that end with the same error. A finished call ends each count, and so does a
// prompt, but for the error.
#include <algorithm>
#include <functional>

#include "facts/digest.h"
#include "judge/variation.h"
#include "watchdog/repetition.h"

namespace watchdog {

const Streak& TurnRepetition::longest() const noexcept {
  return std::max({std::cref(stops), std::cref(requests), std::cref(failures), std::cref(laps)},
                  [](const Streak& a, const Streak& b) { return a.count < b.count; });
}

void Repetition::fold_retry(std::string_view name, Seq seq) {
  novel = false;
  if (name == asked_again) turns.requests.extend(seq);
  messages = before_answer;
  prose.restated = prose.before;
  if (round.finished == 0) round = Round{.number = round.number + 1};
}

void Repetition::fold_refused_stop(Seq seq) {
  novel = false;
  turns.stops.extend(seq);
}

void Repetition::fold_failed_turn(std::string_view error, Seq seq) {
  const auto failure = digest_of(without_variation(error));
  if (turns.failures.count > 0 && failure == turns.failure) {
    turns.failures.extend(seq);
  } else {
    turns.failures.restart(seq);
  }
  turns.failure = failure;
}

}  // namespace watchdog
