// How long the runs of each agent are, and how often held-out runs ended within the range that the
// others give.
#include <algorithm>
#include <map>

#include "facts/digest.h"
#include "predict/training.h"

namespace watchdog {
namespace {

constexpr std::uint64_t no_third = 3;
constexpr std::int64_t length_max = 1'000'000;  ///< Longer runs count as this long.

std::vector<LengthStep> steps_of(const std::vector<const Example*>& runs, std::uint64_t without) {
  struct Ends {
    std::int64_t ended = 0;
    std::int64_t cut = 0;
  };
  std::map<std::int64_t, Ends> by_length;
  std::int64_t at_risk = 0;
  for (const auto* run : runs) {
    if (digest_of(run->task) % 3 == without) continue;
    auto& ends = by_length[std::min(run->calls, length_max)];
    ++(run->end == ExampleEnd::cut ? ends.cut : ends.ended);
    ++at_risk;
  }
  std::vector<LengthStep> steps;
  double longer = 1;
  for (const auto& [calls, ends] : by_length) {
    longer *= 1 - static_cast<double>(ends.ended) / static_cast<double>(at_risk);
    steps.push_back({calls, at_risk, longer});
    at_risk -= ends.ended + ends.cut;
  }
  return steps;
}

/// Keeps as many steps as a file has room for, the last one among them. A kept step stands for all
/// lengths since the one before it, so it has the runs that were at risk when those began.
void thin(std::vector<LengthStep>& steps) {
  const auto every = (steps.size() + model_lengths_max - 1) / model_lengths_max;
  if (every <= 1) return;
  std::vector<LengthStep> kept;
  auto at_risk = steps.front().at_risk;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if ((steps.size() - 1 - i) % every != 0) continue;
    kept.push_back({steps[i].calls, at_risk, steps[i].longer});
    if (i + 1 < steps.size()) at_risk = steps[i + 1].at_risk;
  }
  steps = std::move(kept);
}

void measure_coverage(AgentLengths& lengths, const std::vector<const Example*>& runs) {
  for (std::uint64_t third = 0; third < 3; ++third) {
    AgentLengths others{.steps = steps_of(runs, third)};
    thin(others.steps);  // what is measured is what is used
    for (std::size_t stage = 0; stage < whole_run; ++stage) {
      const auto calls = stage_calls.at(stage);
      const auto range = range_left(others, calls);
      if (!range) continue;
      auto& covered = lengths.coverage.at(stage);
      for (const auto* run : runs) {
        const bool counts =
            run->end != ExampleEnd::cut && run->calls >= calls && digest_of(run->task) % 3 == third;
        if (!counts) continue;
        ++covered.runs;
        const auto left = run->calls - calls;
        covered.inside += left >= range->low && left <= range->high ? 1 : 0;
      }
    }
  }
}

}  // namespace

std::vector<AgentLengths> lengths_of(const std::vector<Example>& examples) {
  std::vector<const Example*> runs;
  runs.reserve(examples.size());
  for (const auto& example : examples) runs.push_back(&example);
  std::vector<AgentLengths> all;
  for (const auto& name : frequent_agents(runs)) {
    std::vector<const Example*> own;
    for (const auto* run : runs) {
      if (run->agent == name) own.push_back(run);
    }
    AgentLengths lengths{.name = name, .steps = steps_of(own, no_third)};
    thin(lengths.steps);
    measure_coverage(lengths, own);
    all.push_back(std::move(lengths));
  }
  std::sort(all.begin(), all.end(),
            [](const AgentLengths& a, const AgentLengths& b) { return a.name < b.name; });
  return all;
}

}  // namespace watchdog
