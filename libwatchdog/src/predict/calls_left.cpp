// Lengths of runs by Kaplan and Meier: a cancelled run only says that it was at least that long. A
// range is conditional on the calls that the session has made. Its bounds are the ranks of a
// conformal prediction. If the session resembles the comparable runs, one in ten of them all is
// below the range, and one in ten above.
#include <algorithm>
#include <cmath>

#include "predict/model.h"

namespace watchdog {

std::optional<CallsLeft> range_left(const AgentLengths& lengths, std::int64_t calls) {
  const auto& steps = lengths.steps;
  const auto first = std::find_if(steps.begin(), steps.end(),
                                  [&](const LengthStep& step) { return step.calls >= calls; });
  if (first == steps.end() || first->at_risk < comparable_min) return {};
  const double longer_before = first == steps.begin() ? 1 : (first - 1)->longer;
  if (!(longer_before > 0)) return {};
  const auto runs = static_cast<double>(first->at_risk);
  const double tail = (1 - calls_left_share) / 2;
  const double low = std::floor((runs + 1) * tail) / runs;
  const double high = std::ceil((runs + 1) * (1 - tail)) / runs;
  const auto length_of = [&](double share) {
    // Sums of shares are not exact.
    constexpr double almost = 1e-9;
    return std::find_if(first, steps.end(), [&](const LengthStep& step) {
      return 1 - step.longer / longer_before >= share - almost;
    });
  };
  const auto least = length_of(low);
  const auto most = length_of(high);
  if (least == steps.end() || most == steps.end()) return {};
  return CallsLeft{
      .low = least->calls - calls, .high = most->calls - calls, .runs = first->at_risk};
}

std::optional<CallsLeft> shown_calls_left(const PredictionModel& model, std::int64_t calls,
                                          std::string_view agent) {
  const auto stage = stage_of(calls);
  if (!stage || agent.empty()) return {};
  for (const auto& lengths : model.lengths) {
    if (lengths.name != agent) continue;
    const auto& covered = lengths.coverage.at(*stage);
    if (covered.runs < comparable_min ||
        static_cast<double>(covered.inside) < coverage_min * static_cast<double>(covered.runs))
      return {};
    auto left = range_left(lengths, calls);
    if (left) left->coverage = covered;
    return left;
  }
  return {};
}

std::string in_words(const CallsLeft& left) {
  const auto range = left.low == left.high
                         ? std::to_string(left.low)
                         : std::to_string(left.low) + " to " + std::to_string(left.high);
  return "4 of 5 such sessions needed " + range + " more calls (" + std::to_string(left.runs) +
         " seen)";
}

}  // namespace watchdog
