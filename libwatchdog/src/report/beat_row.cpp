#include "report/beat_row.h"

#include <algorithm>
#include <cmath>

namespace watchdog {

Heartbeats row_of(const Heartbeat& beat, Instant at) {
  Heartbeats row{.first = at,
                 .last = at,
                 .iteration_first = beat.iteration,
                 .iteration = beat.iteration,
                 .phase = std::string(beat.phase),
                 .source = beat.source};
  for (const auto& counter : beat.counters) {
    if (row.counters.size() == counters_max) break;
    if (!std::isfinite(counter.value)) continue;
    row.counters.emplace_back(counter.name, counter.value);
  }
  return row;
}

bool continues(const Heartbeats& row, const Heartbeat& beat) noexcept {
  return row.source == beat.source && row.phase == beat.phase;
}

void extend(Heartbeats& row, const Heartbeat& beat, Instant at) {
  const auto same_counters = [&] {
    return beat.counters.size() == row.counters.size() &&
           std::equal(beat.counters.begin(), beat.counters.end(), row.counters.begin(),
                      [](const Counter& a, const auto& b) {
                        return a.name == b.first && std::isfinite(a.value);
                      });
  };
  if (!same_counters()) {  // seldom: other counters than before
    absorb(row, row_of(beat, at));
    return;
  }
  row.max_gap = std::max(row.max_gap, at - row.last);
  row.last = at;
  if (beat.iteration) {
    if (row.iteration != beat.iteration) ++row.fresh;
    if (!row.iteration_first) row.iteration_first = beat.iteration;
    row.iteration = beat.iteration;
  }
  bool rose = false;
  for (std::size_t i = 0; i < row.counters.size(); ++i) {
    rose |= beat.counters[i].value > row.counters[i].second;
    row.counters[i].second = beat.counters[i].value;
  }
  row.quiet = rose ? 0 : row.quiet + 1;
  ++row.count;
}

}  // namespace watchdog
