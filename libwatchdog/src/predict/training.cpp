// Logistic regression by Newton's method (iteratively reweighted least squares). Weights are shrunk
// to a prior, and each agent's intercept to that of all agents; how far follows from how much the
// agents differ (empirical Bayes). Each third of the tasks is held out once. Those scores give the
// calibration (isotonic, at least 50 runs in each block) and the threshold for "unlikely". The same
// scores say for each agent whether they rank its own runs better than chance, and for each stage
// whether the repetition alone ranks them as well.
#include "predict/training.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "facts/digest.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

constexpr std::int64_t stage_runs_min = 20;
constexpr std::int64_t block_runs_min = 50;
constexpr double shrinkage = 15;
constexpr double alpha = 0.01;
constexpr int newton_steps = 20;
constexpr int variance_steps = 4;

/// A run at one stage.
struct Row {
  std::array<double, feature_count> z{};
  std::size_t agent = model_agents_max;  ///< `model_agents_max`: of none that is modelled.
  bool unfinished = false;
  std::uint64_t task = 0;
};

struct LogisticFit {
  std::vector<double> values;  ///< Intercept, weights, agents.
  std::vector<double> spread;  ///< Their variances.
};

/// Solves a symmetric positive system; also returns the diagonal of its inverse.
std::vector<double> solve(std::vector<double> matrix, const std::vector<double>& right,
                          std::vector<double>* inverse_diagonal) {
  const auto n = right.size();
  const auto at = [&](std::size_t row, std::size_t column) -> double& {
    return matrix[row * n + column];
  };
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) at(j, j) -= at(j, k) * at(j, k);
    at(j, j) = std::sqrt(std::max(at(j, j), 1e-12));
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) at(i, j) -= at(i, k) * at(j, k);
      at(i, j) /= at(j, j);
    }
  }
  const auto solved = [&](std::vector<double> x) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) x[i] -= at(i, k) * x[k];
      x[i] /= at(i, i);
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) x[i] -= at(k, i) * x[k];
      x[i] /= at(i, i);
    }
    return x;
  };
  if (inverse_diagonal != nullptr) {
    inverse_diagonal->assign(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<double> unit(n, 0);
      unit[i] = 1;
      (*inverse_diagonal)[i] = solved(std::move(unit))[i];
    }
  }
  return solved(right);
}

/// Fits rows with these penalties around `prior`.
LogisticFit fit(const std::vector<const Row*>& rows, const std::vector<double>& prior,
                const std::vector<double>& penalty, bool variances) {
  const auto n = prior.size();
  LogisticFit result{.values = prior, .spread = {}};
  std::array<std::size_t, feature_count + 2> places{};
  std::array<double, feature_count + 2> values{};
  for (int step = 0; step < newton_steps; ++step) {
    std::vector<double> hessian(n * n, 0);
    std::vector<double> gradient(n, 0);
    for (const auto* row : rows) {
      std::size_t used = 0;
      const auto use = [&](std::size_t place, double value) {
        places[used] = place;
        values[used++] = value;
      };
      use(0, 1);
      for (std::size_t i = 0; i < feature_count; ++i) {
        if (row->z[i] != 0) use(i + 1, row->z[i]);
      }
      if (row->agent + 1 + feature_count < n) use(row->agent + 1 + feature_count, 1);
      double score = 0;
      for (std::size_t i = 0; i < used; ++i) score += result.values[places[i]] * values[i];
      const double p = 1 / (1 + std::exp(-std::clamp(score, -30.0, 30.0)));
      const double weight = std::max(p * (1 - p), 1e-6);
      for (std::size_t i = 0; i < used; ++i) {
        gradient[places[i]] += ((row->unfinished ? 1 : 0) - p) * values[i];
        for (std::size_t j = 0; j < used; ++j)
          hessian[places[i] * n + places[j]] += weight * values[i] * values[j];
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] -= penalty[i] * (result.values[i] - prior[i]);
      hessian[i * n + i] += penalty[i];
    }
    const auto change = solve(hessian, gradient, variances ? &result.spread : nullptr);
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) {
      result.values[i] += std::clamp(change[i], -2.0, 2.0);
      most = std::max(most, std::abs(change[i]));
    }
    if (most < 1e-8) break;
  }
  return result;
}

double score_of(const Row& row, const std::vector<double>& values) {
  double score = values[0];
  for (std::size_t i = 0; i < feature_count; ++i) score += values[i + 1] * row.z[i];
  if (row.agent + 1 + feature_count < values.size()) score += values[row.agent + 1 + feature_count];
  return score;
}

/// Isotonic: the share of unfinished runs never falls with the score.
std::vector<ScoreBlock> blocks_of(std::vector<std::pair<double, bool>> scored) {
  std::sort(scored.begin(), scored.end());
  std::vector<ScoreBlock> blocks;
  const auto share = [](const ScoreBlock& block) {
    return static_cast<double>(block.unfinished) / static_cast<double>(block.runs);
  };
  const auto join_last = [&] {
    const auto last = blocks.back();
    blocks.pop_back();
    blocks.back().runs += last.runs;
    blocks.back().unfinished += last.unfinished;
  };
  for (std::size_t i = 0; i < scored.size(); ++i) {
    const bool tied = i > 0 && scored[i].first == scored[i - 1].first;
    if (blocks.empty() || (blocks.back().runs >= block_runs_min && !tied))
      blocks.push_back({.from = scored[i].first});
    ++blocks.back().runs;
    blocks.back().unfinished += scored[i].second ? 1 : 0;
  }
  if (blocks.size() > 1 && blocks.back().runs < block_runs_min) join_last();
  std::vector<ScoreBlock> all;
  std::swap(all, blocks);
  for (const auto& block : all) {
    blocks.push_back(block);
    while (blocks.size() > 1 && share(blocks[blocks.size() - 2]) >= share(blocks.back()))
      join_last();
  }
  // A file has room for `model_blocks_max`.
  while (blocks.size() > model_blocks_max) join_last();
  return blocks;
}

/// A score that at most `alpha` of the finished runs reach.
std::optional<double> threshold_of(const std::vector<std::pair<double, bool>>& scored) {
  std::vector<double> finished;
  for (const auto& [score, unfinished] : scored) {
    if (!unfinished) finished.push_back(score);
  }
  std::sort(finished.begin(), finished.end());
  const auto rank =
      static_cast<std::size_t>(std::ceil(static_cast<double>(finished.size() + 1) * (1 - alpha)));
  if (rank > finished.size() || rank == 0) return {};
  return std::nextafter(finished[rank - 1], INFINITY);
}

void standardise(const std::vector<const Example*>& runs, std::size_t at, StageModel& stage) {
  for (std::size_t i = 0; i < feature_count; ++i) {
    double sum = 0;
    double squares = 0;
    double count = 0;
    for (const auto* run : runs) {
      const double value = (*run->stages[at])[i];
      if (std::isnan(value)) continue;
      sum += value;
      squares += value * value;
      ++count;
    }
    constexpr double scale_min = 1e-3;
    stage.mean[i] = count > 0 ? sum / count : 0;
    const double variance = count > 0 ? squares / count - stage.mean[i] * stage.mean[i] : 0;
    stage.scale[i] = std::max(std::sqrt(std::max(variance, 0.0)), scale_min);
  }
}

std::vector<Row> rows_of(const std::vector<const Example*>& runs, std::size_t at,
                         const StageModel& stage, const std::vector<std::string>& agents,
                         const TrainingOptions& options) {
  std::vector<Row> rows;
  for (const auto* run : runs) {
    Row row{.unfinished = run->end == ExampleEnd::unfinished, .task = digest_of(run->task)};
    for (std::size_t i = 0; i < feature_count; ++i) {
      if (options.no_features || (!options.all_features && i > 0)) continue;
      row.z[i] = standardised((*run->stages[at])[i], stage.mean[i], stage.scale[i]);
    }
    const auto found = std::find(agents.begin(), agents.end(), run->agent);
    if (found != agents.end()) row.agent = static_cast<std::size_t>(found - agents.begin());
    rows.push_back(row);
  }
  return rows;
}

std::vector<const Row*> rows_without(const std::vector<Row>& rows, std::uint64_t third) {
  std::vector<const Row*> kept;
  for (const auto& row : rows) {
    if (row.task % 3 != third) kept.push_back(&row);
  }
  return kept;
}

/// A run that was predicted by the models of the other tasks.
struct HeldOut {
  double score = 0;
  bool unfinished = false;
  std::size_t agent = model_agents_max;
  std::uint64_t task = 0;
};

/// The weights of a stage, and what they say about runs of tasks that were held out.
struct FittedStage {
  LogisticFit fit;
  std::vector<HeldOut> held_out;
};

/// Fits the rows. `weights`: where features are shrunk to.
FittedStage fit_stage(const std::vector<Row>& rows, std::size_t agents, const Features& weights) {
  std::vector<double> centre(1 + feature_count + agents, 0);
  std::vector<double> penalty(centre.size(), shrinkage);
  penalty[0] = 1e-3;
  for (std::size_t i = 0; i < feature_count; ++i) centre[i + 1] = weights[i];
  double variance = 0.5;
  const auto shrink_agents = [&] {
    for (std::size_t i = 1 + feature_count; i < penalty.size(); ++i) penalty[i] = 1 / variance;
  };
  shrink_agents();
  const auto all = rows_without(rows, 3);
  for (int step = 0; step < variance_steps && agents > 0; ++step) {
    const auto tried = fit(all, centre, penalty, true);
    double sum = 0;
    for (std::size_t i = 1 + feature_count; i < centre.size(); ++i)
      sum += tried.values[i] * tried.values[i] + tried.spread[i];
    variance = std::clamp(sum / static_cast<double>(agents), 0.1, 4.0);
    shrink_agents();
  }
  FittedStage fitted;
  for (std::uint64_t third = 0; third < 3; ++third) {
    const auto others = fit(rows_without(rows, third), centre, penalty, false);
    for (const auto& row : rows) {
      if (row.task % 3 == third)
        fitted.held_out.push_back(
            {score_of(row, others.values), row.unfinished, row.agent, row.task});
    }
  }
  fitted.fit = fit(all, centre, penalty, false);
  return fitted;
}

/// Pairs are of one agent, and of one third: scores of one model.
std::size_t group_of(const HeldOut& run) {
  return run.agent * 3 + static_cast<std::size_t>(run.task % 3);
}

/// The AUROC within agents; 0.5 without a pair.
double within_agents(const std::vector<HeldOut>& runs) {
  Ranking ranking;
  RunWeights weights;
  for (const auto& run : runs) {
    ranking.add(run.score, run.unfinished, group_of(run));
    weights.push_back(run.agent < model_agents_max ? 1 : 0);
  }
  ranking.sort();
  const auto found = ranking.pairs(weights).auroc();
  return std::isnan(found) ? 0.5 : found;
}

std::vector<std::pair<double, bool>> scores_in(const std::vector<HeldOut>& runs) {
  std::vector<std::pair<double, bool>> scores;
  scores.reserve(runs.size());
  for (const auto& run : runs) scores.emplace_back(run.score, run.unfinished);
  return scores;
}

/// Decides whether the agent's own held-out runs are ranked better than by its base rate.
void weigh_agent(StageAgent& agent, const std::vector<HeldOut>& runs) {
  agent.runs = static_cast<std::int64_t>(runs.size());
  agent.unfinished =
      std::count_if(runs.begin(), runs.end(), [](const HeldOut& run) { return run.unfinished; });
  if (agent.runs < comparable_min) return;
  if (agent.unfinished == 0 || agent.unfinished == agent.runs) {
    agent.worth = Worth::one_outcome;
    return;
  }
  agent.blocks = blocks_of(scores_in(runs));
  Ranking ranking;
  std::map<std::uint64_t, std::size_t> numbers;
  for (const auto& run : runs) {
    ranking.add(run.score, run.unfinished, group_of(run));
    numbers.emplace(run.task, 0);
  }
  ranking.sort();
  std::size_t next = 0;
  for (auto& number : numbers) number.second = next++;
  std::vector<std::size_t> tasks;
  for (const auto& run : runs) tasks.push_back(numbers[run.task]);
  const auto measured = with_interval(
      tasks, [&](const RunWeights& weights) { return ranking.pairs(weights).auroc(); });
  agent.worth = Worth::at_chance;
  if (std::isnan(measured.value)) return;
  agent.auroc = measured.value;
  agent.auroc_low = measured.low;
  agent.auroc_high = measured.high;
  if (!(measured.low > 0.5)) return;
  agent.worth = agent.blocks.size() < 2 ? Worth::one_group : Worth::shown;
}

std::vector<StageAgent> agents_of(const FittedStage& fitted,
                                  const std::vector<std::string>& names) {
  std::vector<StageAgent> agents;
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::vector<HeldOut> own;
    for (const auto& run : fitted.held_out) {
      if (run.agent == i) own.push_back(run);
    }
    auto& agent = agents.emplace_back(
        StageAgent{.name = names[i], .offset = fitted.fit.values[1 + feature_count + i]});
    weigh_agent(agent, own);
  }
  std::sort(agents.begin(), agents.end(),
            [](const StageAgent& a, const StageAgent& b) { return a.name < b.name; });
  return agents;
}

StageModel train_stage(const std::vector<const Example*>& runs, std::size_t at,
                       const StageModel* prior, const TrainingOptions& options) {
  StageModel stage;
  for (const auto* run : runs) {
    ++stage.runs;
    stage.unfinished += run->end == ExampleEnd::unfinished ? 1 : 0;
  }
  if (stage.runs < stage_runs_min || stage.unfinished == 0 || stage.unfinished == stage.runs)
    return {};
  if (prior != nullptr && prior->runs > 0) {
    stage.mean = prior->mean;
    stage.scale = prior->scale;
  } else {
    standardise(runs, at, stage);
    prior = nullptr;
  }
  const auto agents = options.agents ? frequent_agents(runs) : std::vector<std::string>{};
  const auto fitted_with = [&](const TrainingOptions& chosen) {
    const bool shrinks = prior != nullptr && chosen.all_features && !chosen.no_features;
    return fit_stage(rows_of(runs, at, stage, agents, chosen), agents.size(),
                     shrinks ? prior->weights : Features{});
  };
  auto fitted = fitted_with(options);
  stage.all_features = options.all_features;
  if (options.simplest && options.all_features) {
    auto simple = options;
    simple.all_features = false;
    auto fewer = fitted_with(simple);
    if (within_agents(fitted.held_out) - within_agents(fewer.held_out) < gain_min) {
      fitted = std::move(fewer);
      stage.all_features = false;
    }
  }
  const auto scores = scores_in(fitted.held_out);
  stage.blocks = blocks_of(scores);
  stage.unlikely_from = threshold_of(scores);
  stage.intercept = fitted.fit.values[0];
  for (std::size_t i = 0; i < feature_count; ++i) stage.weights[i] = fitted.fit.values[i + 1];
  stage.agents = agents_of(fitted, agents);
  return stage;
}

}  // namespace

std::vector<std::string> frequent_agents(const std::vector<const Example*>& runs) {
  std::map<std::string, std::int64_t> counts;
  for (const auto* run : runs) {
    if (!run->agent.empty()) ++counts[run->agent];
  }
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, count] : counts) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  std::vector<std::string> names;
  for (const auto& entry : order) {
    if (names.size() < model_agents_max) names.push_back(entry.second);
  }
  return names;
}

PredictionModel train(const std::vector<Example>& examples, const PredictionModel* prior,
                      const TrainingOptions& options) {
  PredictionModel model{.trained_on = hexadecimal(digest_of(to_json_lines(examples))),
                        .runs = static_cast<std::int64_t>(examples.size())};
  for (std::size_t at = 0; at < stage_count; ++at) {
    std::vector<const Example*> runs;
    for (const auto& example : examples) {
      if (example.stages[at] && example.end != ExampleEnd::cut) runs.push_back(&example);
    }
    model.stages[at] =
        train_stage(runs, at, prior == nullptr ? nullptr : &prior->stages[at], options);
  }
  model.lengths = lengths_of(examples);
  return model;
}

PredictionModel as_prior(const PredictionModel& model) {
  PredictionModel prior{.trained_on = model.trained_on, .runs = model.runs};
  const auto short_number = [](double value) {
    constexpr double digits = 1e6;
    return std::round(value * digits) / digits;
  };
  for (std::size_t at = 0; at < stage_count; ++at) {
    const auto& from = model.stages.at(at);
    auto& to = prior.stages.at(at);
    to.runs = from.runs;
    to.unfinished = from.unfinished;
    to.intercept = short_number(from.intercept);
    for (std::size_t i = 0; i < feature_count; ++i) {
      to.mean[i] = short_number(from.mean[i]);
      to.scale[i] = short_number(from.scale[i]);
      to.weights[i] = short_number(from.weights[i]);
    }
  }
  return prior;
}

std::string side_of(const Example& example) {
  if (!example.split.empty()) return example.split;
  return digest_of(example.task) % 2 == 0 ? "a" : "b";
}

}  // namespace watchdog
