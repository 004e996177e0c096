// Measures models on unseen tasks: the ranking of runs, the error of the probabilities, and the
// finished runs that are flagged. Intervals come from a bootstrap that draws whole tasks, because
// runs of one task resemble each other.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "predict/training.h"

namespace watchdog {
namespace {

constexpr int resamples = 500;
constexpr std::uint64_t bootstrap_seed = 20'260'101;

/// A prediction about a run whose end is known.
struct Judged {
  bool unfinished = false;
  double score = 0;
  double repetition = 0;
  double with_agents = 0;
  double share = 0;
  bool unlikely = false;
  std::string agent;
  std::string task;
};

using JudgedRuns = std::vector<const Judged*>;

/// The area under the curve as wins and pairs: a pair is an unfinished and a finished run.
struct Pairs {
  double wins = 0;
  double pairs = 0;
};

template <class Score>
Pairs pairs_of(const JudgedRuns& runs, Score&& score) {
  std::vector<std::pair<double, bool>> order;
  order.reserve(runs.size());
  for (const auto* run : runs) order.emplace_back(score(*run), run->unfinished);
  std::sort(order.begin(), order.end());
  Pairs result;
  double finished = 0;
  double unfinished = 0;
  for (std::size_t i = 0; i < order.size();) {
    double equal_finished = 0;
    double equal_unfinished = 0;
    const double value = order[i].first;
    for (; i < order.size() && order[i].first == value; ++i)
      (order[i].second ? equal_unfinished : equal_finished) += 1;
    result.wins += equal_unfinished * (finished + equal_finished / 2);
    finished += equal_finished;
    unfinished += equal_unfinished;
  }
  result.pairs = finished * unfinished;
  return result;
}

template <class Score>
double auroc_of(const JudgedRuns& runs, Score&& score) {
  const auto found = pairs_of(runs, score);
  return found.pairs > 0 ? found.wins / found.pairs : std::nan("");
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

/// Pairs within groups only.
template <class Key>
Pairs pairs_within(const JudgedRuns& runs, Key&& key) {
  std::map<std::string, JudgedRuns> groups;
  for (const auto* run : runs) groups[key(*run)].push_back(run);
  Pairs sum;
  for (const auto& group : groups) {
    const auto found = pairs_of(group.second, model_score);
    sum.wins += found.wins;
    sum.pairs += found.pairs;
  }
  return sum;
}

double within_agent_of(const JudgedRuns& runs) {
  const auto found = pairs_within(runs, [](const Judged& run) { return run.agent; });
  return found.pairs > 0 ? found.wins / found.pairs : std::nan("");
}

double auprc_of(JudgedRuns runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const Judged* a, const Judged* b) { return a->score > b->score; });
  double found = 0;
  double sum = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i]->unfinished) continue;
    ++found;
    sum += found / static_cast<double>(i + 1);
  }
  return found > 0 ? sum / found : 0;
}

template <class Statistic>
Measured with_interval(const std::vector<Judged>& all, Statistic&& statistic) {
  std::map<std::string, JudgedRuns> by_task;
  JudgedRuns runs;
  for (const auto& run : all) {
    runs.push_back(&run);
    by_task[run.task].push_back(&run);
  }
  std::vector<const JudgedRuns*> tasks;
  for (const auto& entry : by_task) tasks.push_back(&entry.second);
  std::mt19937_64 random(bootstrap_seed);
  std::vector<double> values;
  for (int i = 0; i < resamples; ++i) {
    JudgedRuns drawn;
    for (std::size_t j = 0; j < tasks.size(); ++j) {
      const auto& task = *tasks[random() % tasks.size()];
      drawn.insert(drawn.end(), task.begin(), task.end());
    }
    const double value = statistic(drawn);
    if (!std::isnan(value)) values.push_back(value);
  }
  Measured measured{.value = statistic(runs)};
  measured.low = measured.high = measured.value;
  if (values.empty()) return measured;
  std::sort(values.begin(), values.end());
  measured.low = values[values.size() * 25 / 1'000];
  measured.high = values[values.size() * 975 / 1'000];
  return measured;
}

void add_reliability(const std::vector<Judged>& runs, StageMeasures& measures) {
  constexpr std::size_t bin_count = 10;
  std::array<StageMeasures::Bin, bin_count> bins{};
  for (const auto& run : runs) {
    const double outcome = run.unfinished ? 1 : 0;
    measures.brier += (run.share - outcome) * (run.share - outcome);
    auto& bin = bins[std::min(static_cast<std::size_t>(run.share * bin_count), bin_count - 1)];
    ++bin.runs;
    bin.predicted += run.share;
    bin.observed += outcome;
  }
  const auto all = static_cast<double>(runs.size());
  measures.brier /= all;
  for (auto& bin : bins) {
    if (bin.runs == 0) continue;
    const auto count = static_cast<double>(bin.runs);
    bin.predicted /= count;
    bin.observed /= count;
    measures.ece += count / all * std::abs(bin.predicted - bin.observed);
    measures.bins.push_back(bin);
  }
}

StageMeasures measures_of(const std::vector<Judged>& runs) {
  StageMeasures measures;
  JudgedRuns all;
  for (const auto& run : runs) {
    all.push_back(&run);
    ++measures.runs;
    measures.unfinished += run.unfinished ? 1 : 0;
    if (run.unlikely) ++(run.unfinished ? measures.flagged_unfinished : measures.flagged_finished);
  }
  measures.finished = measures.runs - measures.unfinished;
  const auto model = [](const JudgedRuns& some) { return auroc_of(some, model_score); };
  const auto alone = [](const JudgedRuns& some) { return auroc_of(some, repetition_score); };
  const auto agents = [](const JudgedRuns& some) { return auroc_of(some, agents_score); };
  measures.auroc = with_interval(runs, model);
  measures.auroc_repetition = with_interval(runs, alone);
  measures.auroc_agents = with_interval(runs, agents);
  measures.gain =
      with_interval(runs, [&](const JudgedRuns& some) { return model(some) - alone(some); });
  measures.gain_agents =
      with_interval(runs, [&](const JudgedRuns& some) { return model(some) - agents(some); });
  if (!std::isnan(within_agent_of(all)))
    measures.within_agent = with_interval(runs, within_agent_of);
  const auto tasks =
      pairs_within(all, [](const Judged& run) { return run.agent + "\n" + run.task; });
  measures.task_pairs = static_cast<std::int64_t>(tasks.pairs);
  if (tasks.pairs > 0) measures.within_task = tasks.wins / tasks.pairs;
  measures.auprc = auprc_of(all);
  add_reliability(runs, measures);
  return measures;
}

}  // namespace

std::vector<std::optional<StageMeasures>> measure(const std::vector<Example>& examples) {
  std::set<std::string> sides;
  for (const auto& example : examples) sides.insert(side_of(example));
  std::array<std::vector<Judged>, stage_count> judged;
  for (const auto& side : sides) {
    std::vector<Example> others;
    for (const auto& example : examples) {
      if (side_of(example) != side) others.push_back(example);
    }
    const auto model = train(others);
    const auto repetition = train(others, nullptr, {.all_features = false, .agents = false});
    const auto with_agents = train(others, nullptr, {.all_features = false});
    for (const auto& example : examples) {
      if (side_of(example) != side || example.end == ExampleEnd::cut) continue;
      for (std::size_t at = 0; at < stage_count; ++at) {
        if (!example.stages[at]) continue;
        const auto own = predict(model, at, *example.stages[at], example.agent);
        const auto alone = predict(repetition, at, *example.stages[at], example.agent);
        const auto agents = predict(with_agents, at, *example.stages[at], example.agent);
        if (!own || !alone || !agents) continue;
        judged[at].push_back({.unfinished = example.end == ExampleEnd::unfinished,
                              .score = own->score,
                              .repetition = (*example.stages[at])[0],
                              .with_agents = agents->score,
                              .share = own->share(),
                              .unlikely = own->unlikely,
                              .agent = example.agent,
                              .task = example.task});
      }
    }
  }
  std::vector<std::optional<StageMeasures>> measured(stage_count);
  for (std::size_t at = 0; at < stage_count; ++at) {
    if (judged[at].size() >= 20) measured[at] = measures_of(judged[at]);
  }
  return measured;
}

}  // namespace watchdog
