#include "predict/estimate.h"

#include <algorithm>

namespace watchdog {

std::optional<Estimate> estimate_of(const PredictionModel& model, const Example& reached,
                                    std::int64_t calls, std::string_view agent) {
  const auto stage = stage_of(calls);
  if (!stage) return {};
  Estimate estimate{.calls = calls};
  if (const auto& features = reached.stages.at(*stage)) {
    if (const auto found = shown_prediction(model, *stage, *features, agent)) {
      estimate.unfinished = {.seen = found->runs,
                             .share = rounded(found->share()),
                             .low = rounded(found->low),
                             .high = rounded(found->high),
                             .text = in_words(*found)};
    }
  }
  if (const auto left = shown_calls_left(model, calls, agent)) {
    const double covered =
        static_cast<double>(left->coverage.inside) / static_cast<double>(left->coverage.runs);
    estimate.calls_left = {.low = left->low,
                           .high = left->high,
                           .seen = left->runs,
                           .coverage = rounded(covered),
                           .text = in_words(*left)};
  }
  if (!estimate.unfinished && !estimate.calls_left) return {};
  return estimate;
}

bool has_estimates(const PredictionModel& model, std::string_view agent) {
  if (agent.empty()) return false;
  const bool is_shown = std::ranges::any_of(model.stages, [&](const StageModel& stage) {
    const auto* own = stage_agent(stage, agent);
    return own != nullptr && own->worth == Worth::shown;
  });
  return is_shown || std::ranges::any_of(model.lengths, [&](const AgentLengths& lengths) {
           return lengths.name == agent &&
                  std::ranges::any_of(stage_calls, [&](std::int64_t calls) {
                    return calls > 0 && shown_calls_left(model, calls, agent);
                  });
         });
}

}  // namespace watchdog
