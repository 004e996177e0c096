/// \file
/// A model: how likely a run is not to finish, given its first calls and its kind of agent, and how
/// many calls such runs still needed.
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

/// Why predictions about the sessions of an agent are shown or hidden.
enum class Worth : std::uint8_t {
  shown,
  few_sessions,  ///< fewer than 50 of its own sessions got that far
  one_outcome,   ///< they all ended in the same way
  at_chance,     ///< on held-out sessions it does not beat the agent's own base rate
  one_group      ///< its sessions make no two groups of 50 that ended differently
};

template <>
struct Names<Worth> {
  static constexpr std::string_view all[] = {"shown", "few_sessions", "one_outcome", "at_chance",
                                             "one_group"};
};

/// One kind of agent at one stage. A plain value.
struct StageAgent {
  std::string name{};
  double offset = 0;            ///< Added to the score.
  std::int64_t runs = 0;        ///< Its own runs in training.
  std::int64_t unfinished = 0;  ///< Those that did not finish.
  Worth worth = Worth::few_sessions;
  /// AUROC over pairs of its own held-out runs, with the 95 % interval. Chance, and what the
  /// agent's base rate has, is 0.5.
  double auroc = 0.5, auroc_low = 0, auroc_high = 1;
  std::vector<ScoreBlock> blocks{};  ///< Of its own runs, ascending.
};

/// The model of one stage. The score is the logarithm of the odds, before it is calibrated.
struct StageModel {
  std::int64_t runs = 0;  ///< The runs in training. 0 means that the stage was not trained.
  std::int64_t unfinished = 0;
  /// False: only the repetition is used, because all features were not 0.03 better within agents.
  bool all_features = true;
  Features mean{};
  Features scale{};
  Features weights{};  ///< Of the standardised features.
  double intercept = 0;
  std::vector<StageAgent> agents{};  ///< By name.
  std::vector<ScoreBlock> blocks{};  ///< Of the runs of all agents, ascending.
  /// A run with this score or a higher one is unlikely to finish. Empty: too few runs finished.
  std::optional<double> unlikely_from{};
};

/// A length of runs. A plain value.
struct LengthStep {
  std::int64_t calls = 0;    ///< The length.
  std::int64_t at_risk = 0;  ///< The runs that are at least as long.
  double longer = 0;         ///< The share of all runs that are longer (Kaplan and Meier).
};

/// How many held-out runs ended within their range of calls. A plain value.
struct Coverage {
  std::int64_t runs = 0;
  std::int64_t inside = 0;
};

/// How long the runs of one agent are. Cancelled runs only count up to their cancellation.
struct AgentLengths {
  std::string name{};
  std::vector<LengthStep> steps{};             ///< Ascending.
  std::array<Coverage, whole_run> coverage{};  ///< By stage.
};

inline constexpr int model_version = 2;                    ///< Of the file.
inline constexpr std::size_t model_bytes_max = 1'048'576;  ///< Of the file.
inline constexpr std::size_t model_agents_max = 64;        ///< Of a stage.
inline constexpr std::size_t model_blocks_max = 1'000;     ///< Of a stage, and of an agent in it.
inline constexpr std::size_t model_lengths_max = 100;      ///< Of an agent.
inline constexpr std::int64_t comparable_min = 50;         ///< Fewer are not shown.

/// A plain value.
struct PredictionModel {
  std::string trained_on{};  ///< Digest of its examples.
  std::int64_t runs = 0;     ///< Those examples.
  std::array<StageModel, stage_count> stages{};
  std::vector<AgentLengths> lengths{};  ///< By name.
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

/// Returns nothing if the model has nothing about this stage. Comparable are runs of all agents.
[[nodiscard]] std::optional<Prediction> predict(const PredictionModel& model, std::size_t stage,
                                                const Features& features, std::string_view agent);
/// Returns what may be shown about a session. Comparable are runs of the same agent. Nothing: it
/// stays hidden.
[[nodiscard]] std::optional<Prediction> shown_prediction(const PredictionModel& model,
                                                         std::size_t stage,
                                                         const Features& features,
                                                         std::string_view agent);
/// Returns what the stage knows about the agent; null: nothing.
[[nodiscard]] const StageAgent* stage_agent(const StageModel& stage,
                                            std::string_view agent) noexcept;
/// Returns why predictions are shown or hidden, as part of a sentence.
[[nodiscard]] std::string in_words(const StageAgent& agent);

/// Four of five comparable runs needed this many further calls. A plain value.
struct CallsLeft {
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t runs = 0;  ///< The comparable runs: of the same agent, at least as long.
  Coverage coverage{};    ///< Of held-out runs.
};

/// The aim for the share of runs within a range, and the least share that is good enough to show.
inline constexpr double calls_left_share = 0.8;
inline constexpr double coverage_min = 0.7;

/// Returns the range by the lengths of an agent's runs, after `calls` calls. Nothing: fewer than 50
/// comparable runs, or too many of them were cancelled.
[[nodiscard]] std::optional<CallsLeft> range_left(const AgentLengths& lengths, std::int64_t calls);
/// The same if it may be shown: at least 50 held-out runs got that far, and at least 70 % of them
/// ended within their range.
[[nodiscard]] std::optional<CallsLeft> shown_calls_left(const PredictionModel& model,
                                                        std::int64_t calls, std::string_view agent);
/// Returns a sentence for people: `4 of 5 such sessions needed 3 to 40 more calls (80 seen)`.
[[nodiscard]] std::string in_words(const CallsLeft& left);

/// Returns a sentence for people: `7 of 10 sessions that looked like this did not finish (212
/// seen)`.
[[nodiscard]] std::string in_words(const Prediction& prediction);
/// Returns the three features with the largest share in the score, as sentences. Fewer if the
/// others hardly count.
[[nodiscard]] std::vector<std::string> contributions(const PredictionModel& model,
                                                     std::size_t stage, const Features& features);

/// Returns a feature in units of its scale, −3 … 3; 0 if it is not known.
[[nodiscard]] double standardised(double value, double mean, double scale) noexcept;

[[nodiscard]] std::string to_json(const PredictionModel& model);
/// Reads a hostile file. Errors: `malformed`, `invalid`, `exhausted`, `conflict` (another version,
/// or other features), naming the field.
[[nodiscard]] Result<PredictionModel> model_from_json(std::string_view text);

}  // namespace watchdog
