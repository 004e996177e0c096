// Measures models on unseen tasks: the ranking of runs, the error of the probabilities, and the
// finished runs that are flagged. Each side of the split is predicted by a model of the other side.
// Intervals come from a bootstrap that draws whole tasks. Each statistic is a function of how often
// each run was drawn, so that runs are sorted once.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "predict/training.h"

namespace watchdog {
namespace {

constexpr std::size_t measured_min = 20;
constexpr std::size_t bin_count = 10;

/// A prediction about a run whose end is known.
struct Judged {
  bool unfinished = false;
  double score = 0;
  double repetition = 0;
  double with_agents = 0;
  double share = 0;
  double base = 0;                ///< The base rate of its agent in training.
  std::optional<double> shown{};  ///< The share that would have been shown.
  bool unlikely = false;
  std::optional<CallsLeft> range{};
  bool range_shown = false;
  std::int64_t left = 0;  ///< The calls that it still needed.
  std::string agent;
  std::string task;
};

/// The runs of one stage, and what is counted about them.
class MeasuredStage {
 public:
  explicit MeasuredStage(std::vector<Judged> runs) : runs_(std::move(runs)) {
    std::map<std::string, std::size_t> numbers;
    for (const auto& run : runs_) numbers.emplace(run.task, 0);
    std::size_t next = 0;
    for (auto& number : numbers) number.second = next++;
    for (const auto& run : runs_) tasks_.push_back(numbers[run.task]);
    by_score_.resize(runs_.size());
    for (std::size_t i = 0; i < runs_.size(); ++i) by_score_[i] = i;
    std::stable_sort(by_score_.begin(), by_score_.end(),
                     [&](std::size_t a, std::size_t b) { return runs_[a].score > runs_[b].score; });
  }

  [[nodiscard]] StageMeasures measures() const;

 private:
  using Score = double (*)(const Judged&);
  using Group = std::string (*)(const Judged&);

  [[nodiscard]] Ranking ranking(Score score, Group group) const {
    std::map<std::string, std::size_t> groups;
    Ranking ranking;
    for (const auto& run : runs_)
      ranking.add(score(run), run.unfinished,
                  groups.emplace(group(run), groups.size()).first->second);
    ranking.sort();
    return ranking;
  }
  [[nodiscard]] Measured auroc(const Ranking& ranking) const {
    return with_interval(tasks_,
                         [&](const RunWeights& times) { return ranking.pairs(times).auroc(); });
  }
  [[nodiscard]] std::optional<Measured> auroc_if_any(const Ranking& ranking) const {
    const auto found = ranking.pairs(RunWeights(runs_.size(), 1));
    return found.pairs > 0 ? std::optional(auroc(ranking)) : std::nullopt;
  }
  [[nodiscard]] double auprc(const RunWeights& times) const;
  /// The mean squared error of shares.
  template <class Share>
  [[nodiscard]] double brier(const RunWeights& times, Share&& share) const;
  [[nodiscard]] std::array<StageMeasures::Bin, bin_count> bins(const RunWeights& times) const;
  [[nodiscard]] double ece(const RunWeights& times) const;
  void measure_agents(StageMeasures& measures) const;
  void measure_shown(StageMeasures& measures) const;

  std::vector<Judged> runs_;
  std::vector<std::size_t> tasks_;     ///< The number of each run's task.
  std::vector<std::size_t> by_score_;  ///< Places, the highest score first.
};

std::string one_group(const Judged& /*run*/) {
  return "";
}
std::string by_agent(const Judged& run) {
  return run.agent;
}
std::string by_agent_and_task(const Judged& run) {
  return run.agent + "\n" + run.task;
}
double model_score(const Judged& run) {
  return run.score;
}
double repetition_score(const Judged& run) {
  return run.repetition;
}
double agents_score(const Judged& run) {
  return run.with_agents;
}

double MeasuredStage::auprc(const RunWeights& times) const {
  double found = 0;
  double seen = 0;
  double sum = 0;
  // Runs of one score have no order: a threshold takes all of them, or none.
  for (auto at = by_score_.begin(); at != by_score_.end();) {
    const double score = runs_[*at].score;
    double found_here = 0;
    for (; at != by_score_.end() && runs_[*at].score == score; ++at) {
      seen += times[*at];
      if (runs_[*at].unfinished) found_here += times[*at];
    }
    found += found_here;
    if (seen > 0) sum += found_here * found / seen;
  }
  return found > 0 ? sum / found : std::nan("");
}

template <class Share>
double MeasuredStage::brier(const RunWeights& times, Share&& share) const {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const double error = share(runs_[i]) - (runs_[i].unfinished ? 1 : 0);
    sum += times[i] * error * error;
    count += times[i];
  }
  return count > 0 ? sum / count : std::nan("");
}

/// Sums: predicted and observed are not divided yet.
std::array<StageMeasures::Bin, bin_count> MeasuredStage::bins(const RunWeights& times) const {
  std::array<StageMeasures::Bin, bin_count> bins{};
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const auto& run = runs_[i];
    auto& bin = bins[std::min(static_cast<std::size_t>(run.share * bin_count), bin_count - 1)];
    bin.runs += times[i];
    bin.predicted += times[i] * run.share;
    bin.observed += run.unfinished ? times[i] : 0;
  }
  return bins;
}

double MeasuredStage::ece(const RunWeights& times) const {
  double sum = 0;
  double count = 0;
  for (const auto& bin : bins(times)) {
    sum += std::abs(bin.predicted - bin.observed);
    count += static_cast<double>(bin.runs);
  }
  return count > 0 ? sum / count : std::nan("");
}

void MeasuredStage::measure_agents(StageMeasures& measures) const {
  std::map<std::string, std::vector<Judged>> by_name;
  for (const auto& run : runs_) by_name[run.agent].push_back(run);
  for (auto& [name, runs] : by_name) {
    AgentMeasures own{.agent = name, .runs = static_cast<std::int64_t>(runs.size())};
    for (const auto& run : runs) own.unfinished += run.unfinished ? 1 : 0;
    const RunWeights once(runs.size(), 1);
    const MeasuredStage stage(std::move(runs));
    own.auroc = stage.auroc_if_any(stage.ranking(model_score, one_group));
    own.brier = stage.brier(once, [](const Judged& run) { return run.share; });
    own.brier_base = stage.brier(once, [](const Judged& run) { return run.base; });
    measures.agents.push_back(std::move(own));
  }
  std::stable_sort(measures.agents.begin(), measures.agents.end(),
                   [](const AgentMeasures& a, const AgentMeasures& b) { return a.runs > b.runs; });
}

void MeasuredStage::measure_shown(StageMeasures& measures) const {
  RunWeights shown(runs_.size(), 0);
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const auto& run = runs_[i];
    shown[i] = run.shown ? 1 : 0;
    measures.shown += shown[i];
    if (!run.range) continue;
    const bool inside = run.left >= run.range->low && run.left <= run.range->high;
    widths.push_back(run.range->high - run.range->low);
    ++measures.ranges.runs;
    measures.ranges.inside += inside ? 1 : 0;
    if (!run.range_shown) continue;
    ++measures.shown_ranges.runs;
    measures.shown_ranges.inside += inside ? 1 : 0;
  }
  if (measures.shown > 0) {
    measures.shown_brier =
        brier(shown, [](const Judged& run) { return run.shown.value_or(run.base); });
    measures.shown_brier_base = brier(shown, [](const Judged& run) { return run.base; });
  }
  if (widths.empty()) return;
  const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
  std::nth_element(widths.begin(), middle, widths.end());
  measures.range_width = static_cast<double>(*middle);
}

StageMeasures MeasuredStage::measures() const {
  StageMeasures measures;
  for (const auto& run : runs_) {
    ++measures.runs;
    measures.unfinished += run.unfinished ? 1 : 0;
    if (run.unlikely) ++(run.unfinished ? measures.flagged_unfinished : measures.flagged_finished);
  }
  measures.finished = measures.runs - measures.unfinished;
  const auto model = ranking(model_score, one_group);
  const auto alone = ranking(repetition_score, one_group);
  const auto agents = ranking(agents_score, one_group);
  measures.auroc = auroc(model);
  measures.auroc_repetition = auroc(alone);
  measures.auroc_agents = auroc(agents);
  const auto above = [&](const Ranking& other) {
    return with_interval(tasks_, [&](const RunWeights& times) {
      return model.pairs(times).auroc() - other.pairs(times).auroc();
    });
  };
  measures.gain = above(alone);
  measures.gain_agents = above(agents);
  measures.within_agent = auroc_if_any(ranking(model_score, by_agent));
  measures.within_agent_repetition = auroc_if_any(ranking(repetition_score, by_agent));
  const auto within_tasks = ranking(model_score, by_agent_and_task);
  measures.within_task = auroc_if_any(within_tasks);
  const RunWeights once(runs_.size(), 1);
  measures.task_pairs = static_cast<std::int64_t>(within_tasks.pairs(once).pairs);
  measures.auprc = with_interval(tasks_, [&](const RunWeights& times) { return auprc(times); });
  measures.brier = with_interval(tasks_, [&](const RunWeights& times) {
    return brier(times, [](const Judged& run) { return run.share; });
  });
  measures.brier_base = with_interval(tasks_, [&](const RunWeights& times) {
    return brier(times, [](const Judged& run) { return run.base; });
  });
  measures.ece = with_interval(tasks_, [&](const RunWeights& times) { return ece(times); });
  for (auto bin : bins(once)) {
    if (bin.runs == 0) continue;
    bin.predicted /= static_cast<double>(bin.runs);
    bin.observed /= static_cast<double>(bin.runs);
    measures.bins.push_back(bin);
  }
  measure_agents(measures);
  measure_shown(measures);
  return measures;
}

/// The models of one side, and the other side's base rates.
struct SideModels {
  PredictionModel model;
  PredictionModel with_agents;
  PredictionModel repetition;
  PredictionModel shipped;  ///< As `predict train` makes it.
};

double base_rate(const StageModel& stage, const std::string& name) {
  const auto* agent = stage_agent(stage, name);
  const auto runs = agent == nullptr ? stage.runs : agent->runs;
  const auto unfinished = agent == nullptr ? stage.unfinished : agent->unfinished;
  return runs == 0 ? 0 : static_cast<double>(unfinished) / static_cast<double>(runs);
}

std::optional<Judged> judged_by(const SideModels& models, const Example& example, std::size_t at) {
  const auto& features = example.stages.at(at);
  if (!features) return {};
  const auto own = predict(models.model, at, *features, example.agent);
  const auto alone = predict(models.repetition, at, *features, example.agent);
  const auto agents = predict(models.with_agents, at, *features, example.agent);
  if (!own || !alone || !agents) return {};
  Judged judged{.unfinished = example.end == ExampleEnd::unfinished,
                .score = own->score,
                .repetition = (*features)[0],
                .with_agents = agents->score,
                .share = own->share(),
                .base = base_rate(models.model.stages.at(at), example.agent),
                .unlikely = own->unlikely,
                .left = example.calls - stage_calls.at(at),
                .agent = example.agent,
                .task = example.task};
  if (at == whole_run) return judged;
  if (const auto shown = shown_prediction(models.shipped, at, *features, example.agent))
    judged.shown = shown->share();
  for (const auto& lengths : models.shipped.lengths) {
    if (lengths.name == example.agent) judged.range = range_left(lengths, stage_calls.at(at));
  }
  judged.range_shown =
      shown_calls_left(models.shipped, stage_calls.at(at), example.agent).has_value();
  return judged;
}

}  // namespace

std::vector<std::optional<StageMeasures>> measure(const std::vector<Example>& examples,
                                                  const PredictionModel* prior) {
  std::set<std::string> sides;
  for (const auto& example : examples) sides.insert(side_of(example));
  std::array<std::vector<Judged>, stage_count> judged;
  for (const auto& side : sides) {
    std::vector<Example> others;
    for (const auto& example : examples) {
      if (side_of(example) != side) others.push_back(example);
    }
    const SideModels models{
        .model = train(others, prior),
        .with_agents = train(others, nullptr, {.all_features = false}),
        .repetition = train(others, nullptr, {.all_features = false, .agents = false}),
        .shipped = train(others, prior, {.simplest = true})};
    for (const auto& example : examples) {
      if (side_of(example) != side || example.end == ExampleEnd::cut) continue;
      for (std::size_t at = 0; at < stage_count; ++at) {
        if (auto run = judged_by(models, example, at)) judged[at].push_back(std::move(*run));
      }
    }
  }
  std::vector<std::optional<StageMeasures>> measured(stage_count);
  for (std::size_t at = 0; at < stage_count; ++at) {
    if (judged[at].size() >= measured_min)
      measured[at] = MeasuredStage(std::move(judged[at])).measures();
  }
  return measured;
}

}  // namespace watchdog
