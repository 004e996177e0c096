// A prediction is a score, and the runs of similar scores whose ends are known. Its interval is
// that of their share. The same score is compared with runs of all agents, which measures use, or
// with runs of one agent, which people see.
#include "predict/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "text/interval.h"

namespace watchdog {
namespace {

constexpr double interval_max = 0.4;
constexpr std::size_t contributions_max = 3;
/// Smaller shares in the log-odds say nothing.
constexpr double contribution_min = 0.05;

constexpr std::array<std::string_view, feature_count> feature_words = {
    "how strongly calls repeat each other",
    "the share of calls that repeat an earlier one",
    "the share of failed calls",
    "the share of failed calls among the latest 8",
    "the longest row of equal errors",
    "the share of informative results",
    "the share of new words in arguments",
    "the share of new words in the latest arguments",
    "the share of new words in the latest results",
    "the share of new words in the latest messages",
    "the similarity of the latest calls to those before"};

std::string two_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

double score_of(const StageModel& stage, const Features& features, std::string_view agent) {
  double score = stage.intercept;
  for (std::size_t at = 0; at < feature_count; ++at)
    score += stage.weights[at] * standardised(features[at], stage.mean[at], stage.scale[at]);
  const auto* own = stage_agent(stage, agent);
  return own == nullptr ? score : score + own->offset;
}

/// Sets the numbers of comparable runs. REQUIRES: there are blocks.
void compare(Prediction& prediction, const std::vector<ScoreBlock>& blocks) {
  const auto after = std::find_if(blocks.begin() + 1, blocks.end(), [&](const ScoreBlock& block) {
    return block.from > prediction.score;
  });
  const auto& block = *(after - 1);
  prediction.runs = block.runs;
  prediction.unfinished = block.unfinished;
  if (block.runs == 0) return;
  const auto [low, high] = wilson(block.unfinished, block.runs);
  prediction.low = low;
  prediction.high = high;
  prediction.worth_showing =
      block.runs >= comparable_min && prediction.high - prediction.low <= interval_max;
}

}  // namespace

double standardised(double value, double mean, double scale) noexcept {
  constexpr double limit = 3;
  if (std::isnan(value)) return 0;
  return std::clamp((value - mean) / scale, -limit, limit);
}

double Prediction::share() const noexcept {
  return runs == 0 ? 0 : static_cast<double>(unfinished) / static_cast<double>(runs);
}

std::optional<Prediction> predict(const PredictionModel& model, std::size_t stage,
                                  const Features& features, std::string_view agent) {
  const auto& own = model.stages.at(stage);
  if (own.runs == 0 || own.blocks.empty()) return {};
  Prediction prediction{.score = score_of(own, features, agent)};
  prediction.unlikely = own.unlikely_from && prediction.score >= *own.unlikely_from;
  compare(prediction, own.blocks);
  return prediction;
}

std::optional<Prediction> shown_prediction(const PredictionModel& model, std::size_t stage,
                                           const Features& features, std::string_view agent) {
  const auto* own = stage_agent(model.stages.at(stage), agent);
  if (own == nullptr || own->worth != Worth::shown || own->blocks.empty()) return {};
  auto prediction = predict(model, stage, features, agent);
  if (!prediction) return {};
  compare(*prediction, own->blocks);
  return prediction->worth_showing ? prediction : std::nullopt;
}

const StageAgent* stage_agent(const StageModel& stage, std::string_view agent) noexcept {
  if (agent.empty()) return nullptr;
  const auto found = std::find_if(stage.agents.begin(), stage.agents.end(),
                                  [&](const StageAgent& known) { return known.name == agent; });
  return found == stage.agents.end() ? nullptr : &*found;
}

std::string in_words(const StageAgent& agent) {
  const auto sessions = std::to_string(agent.runs) + (agent.runs == 1 ? " session" : " sessions");
  switch (agent.worth) {
    case Worth::shown:
      return "shown (" + sessions + ", AUROC " + two_digits(agent.auroc) + ")";
    case Worth::few_sessions:
      return "hidden: " + sessions + " got that far; 50 are needed";
    case Worth::one_outcome:
      return "hidden: all " + sessions + " ended in the same way";
    case Worth::at_chance:
      return "hidden: on held-out sessions it does not beat the agent's own base rate (AUROC " +
             two_digits(agent.auroc) + ", interval " + two_digits(agent.auroc_low) + " to " +
             two_digits(agent.auroc_high) + "; the base rate has 0.50)";
    case Worth::one_group:
      return "hidden: its " + sessions + " make no two groups of 50 that ended differently";
  }
  return "";
}

std::string in_words(const Prediction& prediction) {
  return std::to_string(std::lround(10 * prediction.share())) +
         " of 10 sessions that looked like this did not finish (" +
         std::to_string(prediction.runs) + " seen)";
}

std::vector<std::string> contributions(const PredictionModel& model, std::size_t stage,
                                       const Features& features) {
  const auto& own = model.stages.at(stage);
  if (own.runs == 0) return {};
  const auto part = [&](std::size_t at) {
    return own.weights[at] * standardised(features[at], own.mean[at], own.scale[at]);
  };
  std::array<std::size_t, feature_count> order{};
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(part(a)) > std::abs(part(b));
  });
  std::vector<std::string> sentences;
  for (const auto at : order) {
    if (sentences.size() == contributions_max || std::abs(part(at)) < contribution_min) break;
    sentences.push_back("The value of " + std::string(feature_words[at]) + " is " +
                        two_digits(features[at]) + "; the mean is " + two_digits(own.mean[at]) +
                        ". This makes it " + (part(at) > 0 ? "less" : "more") +
                        " likely that the session finishes.");
  }
  return sentences;
}

}  // namespace watchdog
