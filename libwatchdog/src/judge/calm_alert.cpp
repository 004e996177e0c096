#include "judge/calm_alert.h"

#include <algorithm>

#include "judge/attention.h"
#include "judge/unwell_child.h"

namespace watchdog {

void be_calm_in_family(Condition& condition, const History& history) {
  const bool waits_for_children =
      condition.waits && history.notes->waiting_for == wait_reports::children;
  const bool is_held = condition.cause == AlertCause::quiet && unwell_child::says(history, {});
  // Nor is anybody called to a rest that is nobody's turn.
  const bool rests = condition.cause == AlertCause::idle && !is_turn_of_person(history);
  if (waits_for_children || is_held || rests) condition.kind = Condition::Kind::calm;
}

void be_calm_in_recording(Condition& condition, const History& history, WallTime wall) {
  const bool is_recording =
      wall - condition.at >= end_fresh_for &&
      std::ranges::all_of(history.sources, [](const SourceNote& source) {
        return source.origin == ReportOrigin::transcript || source.origin == ReportOrigin::monitor;
      });
  if (is_recording) condition.kind = Condition::Kind::calm;
}

}  // namespace watchdog
