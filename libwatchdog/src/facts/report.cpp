#include "watchdog/report.h"

#include <algorithm>
#include <utility>

#include "watchdog/reasons.h"

namespace watchdog {

Outcome with_subject(Outcome outcome) {
  constexpr std::pair<std::string_view, std::string_view> combined[] = {
      {"cancelled_by_", reasons::cancelled}, {"budget_exhausted:", reasons::budget_exhausted}};
  for (const auto& [before, reason] : combined) {
    if (!outcome.reason.starts_with(before)) continue;
    if (outcome.subject.empty()) outcome.subject = outcome.reason.substr(before.size());
    outcome.reason = reason;
    break;
  }
  return outcome;
}

std::string reason_and_subject(const Outcome& outcome) {
  return outcome.subject.empty() ? outcome.reason : outcome.reason + ": " + outcome.subject;
}

bool same_row(const Heartbeats& a, const Heartbeats& b) noexcept {
  return a.source == b.source && a.phase == b.phase;
}

bool rises(const Counters& older, const Counters& newer) noexcept {
  return std::any_of(newer.begin(), newer.end(), [&](const auto& counter) {
    const auto same = std::find_if(older.begin(), older.end(), [&](const auto& candidate) {
      return candidate.first == counter.first;
    });
    return counter.second > (same == older.end() ? 0.0 : same->second);
  });
}

void absorb(Heartbeats& row, const Heartbeats& next) {
  row.max_gap = std::max({row.max_gap, next.max_gap, next.first - row.last});
  row.last = next.last;
  if (next.iteration) {
    if (row.iteration != next.iteration_first) ++row.fresh;
    if (!row.iteration_first) row.iteration_first = next.iteration_first;
    row.iteration = next.iteration;
  }
  row.fresh += next.fresh;
  if (rises(row.counters, next.counters)) {
    row.quiet = next.quiet;
  } else {
    row.quiet += next.count;
  }
  if (!next.counters.empty()) row.counters = next.counters;
  row.count += next.count;
}

}  // namespace watchdog
