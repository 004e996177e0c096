/// \file
/// A model: how likely a run is not to finish, given its first calls and its kind of agent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "predict/example.h"
#include "watchdog/result.h"

namespace watchdog {

/// Runs of similar scores: how many there were and how many of them did not finish.
struct ScoreBlock {
  double from = 0;  ///< The lowest score; the first block has every lower one as well.
  std::int64_t runs = 0;
  std::int64_t unfinished = 0;
};

/// The model of one stage. The score is the logarithm of the odds, before it is calibrated.
struct StageModel {
  std::int64_t runs = 0;  ///< The runs in training. 0 means that the stage was not trained.
  std::int64_t unfinished = 0;
  Features mean{};
  Features scale{};
  Features weights{};  ///< Of the standardised features.
  double intercept = 0;
  std::vector<std::pair<std::string, double>> agents{};  ///< Added to it; others: 0.
  std::vector<ScoreBlock> blocks{};                      ///< Ascending.
  /// A run with this score or a higher one is unlikely to finish. Empty: too few runs finished.
  std::optional<double> unlikely_from{};
};

inline constexpr int model_version = 1;                    ///< Of the file.
inline constexpr std::size_t model_bytes_max = 1'048'576;  ///< Of the file.
inline constexpr std::size_t model_agents_max = 64;        ///< Of a stage.
inline constexpr std::size_t model_blocks_max = 1'000;     ///< Of a stage.

/// A plain value.
struct PredictionModel {
  std::string trained_on{};  ///< Digest of its examples.
  std::array<StageModel, stage_count> stages{};
};

/// A statement about a run. A plain value.
struct Prediction {
  double score = 0;
  std::int64_t runs = 0;        ///< The comparable runs in training.
  std::int64_t unfinished = 0;  ///< The comparable runs that did not finish.
  double low = 0;               ///< 95 % interval of that share.
  double high = 1;
  bool unlikely = false;  ///< Unlikely to finish.
  /// False: fewer than 50 comparable runs, or an interval wider than 0.4. Then show nothing.
  bool worth_showing = false;

  [[nodiscard]] double share() const noexcept;
};

/// Returns nothing if the model has nothing about this stage.
[[nodiscard]] std::optional<Prediction> predict(const PredictionModel& model, std::size_t stage,
                                                const Features& features, std::string_view agent);
/// Returns a sentence for people: `7 of 10 sessions that looked like this did not finish (212
/// seen)`.
[[nodiscard]] std::string in_words(const Prediction& prediction);
/// Returns the three features with the largest share in the score, as sentences.
[[nodiscard]] std::vector<std::string> contributions(const PredictionModel& model,
                                                     std::size_t stage, const Features& features);

/// Returns a feature in units of its scale, −3 … 3; 0 if it is not known.
[[nodiscard]] double standardised(double value, double mean, double scale) noexcept;

[[nodiscard]] std::string to_json(const PredictionModel& model);
/// Reads a hostile file. Errors: `malformed`, `invalid`, `exhausted`, `conflict` (another version,
/// or other features), naming the field.
[[nodiscard]] Result<PredictionModel> model_from_json(std::string_view text);

}  // namespace watchdog
