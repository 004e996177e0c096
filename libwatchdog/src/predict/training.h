/// \file
/// Makes models from ended runs, and measures them on runs of other tasks. Deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "predict/model.h"

namespace watchdog {

/// The inputs of a model. The baselines use fewer.
struct TrainingOptions {
  bool all_features = true;  ///< False: only `repetition`.
  bool no_features = false;
  bool agents = true;
};

/// Trains each stage that has at least 20 runs, of which some finished and some did not. `prior`:
/// weights are shrunk to its weights, without it to 0.
[[nodiscard]] PredictionModel train(const std::vector<Example>& examples,
                                    const PredictionModel* prior = nullptr,
                                    const TrainingOptions& options = {});

/// Returns which side of a split a run is on: equal for all runs of a task.
[[nodiscard]] std::string side_of(const Example& example);

/// An estimate with its 95 % interval: 500 resamples of tasks, of a fixed seed.
struct Measured {
  double value = 0;
  double low = 0;
  double high = 0;
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
  std::optional<double> within_task{};     ///< Over pairs of runs of one task.
  std::int64_t task_pairs = 0;
  double auprc = 0;
  double brier = 0;
  double ece = 0;  ///< Ten bins of equal width.
  std::int64_t finished = 0;
  std::int64_t flagged_finished = 0;    ///< Called unlikely to finish, and finished.
  std::int64_t flagged_unfinished = 0;  ///< Called unlikely to finish, and did not.
  struct Bin {
    std::int64_t runs = 0;
    double predicted = 0;  ///< Mean.
    double observed = 0;   ///< Share.
  };
  std::vector<Bin> bins{};  ///< With runs only, ascending.
};

/// Trains on one side and predicts the other, for each side. Empty: a stage without enough runs.
[[nodiscard]] std::vector<std::optional<StageMeasures>> measure(
    const std::vector<Example>& examples);

}  // namespace watchdog
