/// \file
/// When a session got further, as people are shown it.
#pragma once

#include <algorithm>

#include "judge/source_note.h"

namespace watchdog {

/// Returns the time of the newest state change. Evidence may come long after what it reports, and a
/// change is not younger than the newest report's own time. `now` and `wall` are the same moment on
/// both clocks.
[[nodiscard]] inline WallTime changed_at(const History& history, Instant now, WallTime wall) {
  const auto heard = wall - (now - history.last_change);
  const auto newest = newest_report(history);
  return newest == WallTime{} ? heard : std::min(heard, newest);
}

}  // namespace watchdog
