/// \file
/// Ranks runs once, and then measures any resample of their tasks in one pass.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace watchdog {

/// How often each run counts, by its place.
using RunWeights = std::vector<std::uint32_t>;

/// The area under the curve as wins and pairs: a pair is an unfinished and a finished run.
struct RankedPairs {
  double wins = 0;
  double pairs = 0;
  /// NaN without a pair.
  [[nodiscard]] double auroc() const { return pairs > 0 ? wins / pairs : std::nan(""); }
};

/// Pairs of runs within groups. A plain value.
class Ranking {
 public:
  /// `group`: only runs of one group are compared.
  void add(double score, bool unfinished, std::size_t group) {
    order_.push_back({group, score, unfinished, order_.size()});
  }
  void sort() {
    std::sort(order_.begin(), order_.end(), [](const Ranked& a, const Ranked& b) {
      if (a.group != b.group) return a.group < b.group;
      return a.score != b.score ? a.score < b.score : a.place < b.place;
    });
  }
  /// REQUIRES: sorted.
  [[nodiscard]] RankedPairs pairs(const RunWeights& weights) const {
    RankedPairs result;
    for (std::size_t i = 0; i < order_.size();) {
      const auto group = order_[i].group;
      double finished = 0;
      double unfinished = 0;
      while (i < order_.size() && order_[i].group == group) {
        const double score = order_[i].score;
        double equal_finished = 0;
        double equal_unfinished = 0;
        for (; i < order_.size() && order_[i].group == group && order_[i].score == score; ++i)
          (order_[i].unfinished ? equal_unfinished : equal_finished) += weights[order_[i].place];
        result.wins += equal_unfinished * (finished + equal_finished / 2);
        finished += equal_finished;
        unfinished += equal_unfinished;
      }
      result.pairs += finished * unfinished;
    }
    return result;
  }

 private:
  struct Ranked {
    std::size_t group;
    double score;
    bool unfinished;
    std::size_t place;  ///< In the order in which the runs were added.
  };
  std::vector<Ranked> order_;
};

inline constexpr int bootstrap_resamples = 500;

/// Draws whole tasks, because runs of one task resemble each other. The seed is fixed.
class TaskBootstrap {
 public:
  /// `tasks`: the number of each run's task, from 0.
  explicit TaskBootstrap(const std::vector<std::size_t>& tasks) : tasks_(tasks) {
    for (const auto task : tasks) count_ = std::max(count_, task + 1);
  }
  /// Returns the weights of the next resample.
  [[nodiscard]] RunWeights draw() {
    std::vector<std::uint32_t> times(count_, 0);
    for (std::size_t i = 0; i < count_; ++i) ++times[random_() % count_];
    RunWeights weights(tasks_.size());
    for (std::size_t run = 0; run < tasks_.size(); ++run) weights[run] = times[tasks_[run]];
    return weights;
  }

 private:
  static constexpr std::uint64_t seed = 20'260'101;
  const std::vector<std::size_t>& tasks_;
  std::size_t count_ = 0;
  std::mt19937_64 random_{seed};
};

/// A value and its 95 % interval.
struct Measured {
  double value = 0;
  double low = 0;
  double high = 0;
};

/// Measures all runs, and resamples of their tasks.
template <class Statistic>
Measured with_interval(const std::vector<std::size_t>& tasks, Statistic&& statistic) {
  TaskBootstrap bootstrap(tasks);
  std::vector<double> values;
  for (int i = 0; i < bootstrap_resamples; ++i) {
    const double value = statistic(bootstrap.draw());
    if (!std::isnan(value)) values.push_back(value);
  }
  Measured measured{.value = statistic(RunWeights(tasks.size(), 1))};
  measured.low = measured.high = measured.value;
  if (values.empty()) return measured;
  std::sort(values.begin(), values.end());
  measured.low = values[values.size() * 25 / 1'000];
  measured.high = values[values.size() * 975 / 1'000];
  return measured;
}

}  // namespace watchdog
