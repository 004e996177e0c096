/// \file
/// Makes models from ended runs, and measures them on runs of other tasks. Deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/model.h"
#include "predict/ranking.h"

namespace watchdog {

/// The inputs of a model. The baselines use fewer.
struct TrainingOptions {
  bool all_features = true;  ///< False: only `repetition`.
  bool no_features = false;
  bool agents = true;
  /// True: a stage uses only the repetition, unless all features are `gain_min` better in ranking
  /// the held-out runs of one agent.
  bool simplest = false;
};

/// The AUROC that all features must have above the repetition alone.
inline constexpr double gain_min = 0.03;

/// Trains each stage that has at least 20 runs, of which some finished and some did not. `prior`:
/// weights are shrunk to its weights, without it to 0. A stage that uses only the repetition takes
/// nothing from the prior but means and scales.
[[nodiscard]] PredictionModel train(const std::vector<Example>& examples,
                                    const PredictionModel* prior = nullptr,
                                    const TrainingOptions& options = {});

/// Returns the lengths of runs, of at most `model_agents_max` agents.
[[nodiscard]] std::vector<AgentLengths> lengths_of(const std::vector<Example>& examples);

/// Returns the model as a prior for other examples: means, scales and weights, with six digits, and
/// no agent.
[[nodiscard]] PredictionModel as_prior(const PredictionModel& model);

/// Returns the agents with the most runs, at most `model_agents_max`, the most frequent first.
[[nodiscard]] std::vector<std::string> frequent_agents(const std::vector<const Example*>& runs);

/// Returns which side of a split a run is on: equal for all runs of a task.
[[nodiscard]] std::string side_of(const Example& example);

/// How well a stage predicts the runs of one agent, of tasks that were not in its training.
struct AgentMeasures {
  std::string agent{};
  std::int64_t runs = 0;
  std::int64_t unfinished = 0;
  std::optional<Measured> auroc{};  ///< Empty: they all ended in the same way.
  double brier = 0;
  double brier_base = 0;  ///< Of the agent's base rate in training.
};

/// How well a stage predicts runs of tasks that were not in its training.
struct StageMeasures {
  std::int64_t runs = 0;
  std::int64_t unfinished = 0;
  Measured auroc{};
  Measured auroc_repetition{};             ///< Of the repetition alone.
  Measured auroc_agents{};                 ///< Of repetition and kind of agent.
  Measured gain{};                         ///< AUROC above that of repetition alone.
  Measured gain_agents{};                  ///< AUROC above that of repetition and kind of agent.
  std::optional<Measured> within_agent{};  ///< AUROC over pairs of runs of one kind of agent.
  std::optional<Measured> within_agent_repetition{};  ///< The same of the repetition alone.
  std::optional<Measured> within_task{};              ///< Over pairs of runs of one task.
  std::int64_t task_pairs = 0;
  Measured auprc{};
  Measured brier{};
  Measured brier_base{};  ///< Of each agent's base rate in training.
  Measured ece{};         ///< Ten bins of equal width.
  std::int64_t finished = 0;
  std::int64_t flagged_finished = 0;    ///< Called unlikely to finish, and finished.
  std::int64_t flagged_unfinished = 0;  ///< Called unlikely to finish, and did not.
  struct Bin {
    std::int64_t runs = 0;
    double predicted = 0;  ///< Mean.
    double observed = 0;   ///< Share.
  };
  std::vector<Bin> bins{};              ///< With runs only, ascending.
  std::vector<AgentMeasures> agents{};  ///< The most frequent first.
  std::int64_t shown = 0;               ///< Runs about which something would have been shown.
  double shown_brier = 0;               ///< Of what would have been shown about them.
  double shown_brier_base = 0;          ///< Of their agents' base rates.
  /// Of the calls that were left: for all runs with a range, and for those that would be shown.
  Coverage ranges{};
  Coverage shown_ranges{};
  double range_width = 0;  ///< Median.
};

/// Trains on one side and predicts the other, for each side. Empty: a stage without enough runs.
[[nodiscard]] std::vector<std::optional<StageMeasures>> measure(
    const std::vector<Example>& examples, const PredictionModel* prior = nullptr);

}  // namespace watchdog
