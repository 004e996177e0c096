/// \file
/// Scores a rule: compares its findings about labelled runs with people's labels.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "score/evaluation.h"
#include "score/labels.h"
#include "text/interval.h"

namespace watchdog::monitor {

/// A share: a number out of a total. A plain value.
struct Count {
  int is = 0;
  int of = 0;

  void add(bool yes) {
    ++of;
    if (yes) ++is;
  }
  /// Empty where there is nothing to have a share of.
  [[nodiscard]] std::optional<double> share() const;
};

/// Wilson's interval for the share that the count is a sample of, at 95 %.
[[nodiscard]] Interval interval_of(const Count& count);

/// A run with what people and what the rules said of it.
struct ScoredRun {
  Label label;
  Findings findings;
  std::vector<StepLabel> steps;
  bool pooled = true;  ///< False: the same run under another source is counted instead.
};

/// Removes one of two runs that are the same in two sources: the unlabelled one, else that of
/// `whowhen`.
void count_once(std::vector<ScoredRun>& runs);

/// Runs are also scored by their first calls; 0: all.
inline constexpr std::array<int, 4> prefixes = {0, 8, 12, 20};

/// Runs of one group by their labels, as far as they have `first_calls` calls.
struct RunCounts {
  int runs = 0;
  int loops = 0;
  int others = 0;     ///< Labelled as no loops.
  int successes = 0;  ///< Of those not labelled as loops.
};

/// A rule's results on a group of runs.
struct Score {
  Count precision;     ///< Loops among the labelled runs with an alarm.
  Count recall;        ///< Runs with an alarm among the loops.
  Count false_alarms;  ///< Runs with an alarm among the successful ones not labelled as loops.
  Count suspects;      ///< Runs ever `suspect` among the same.
  std::optional<double> median_call;  ///< Of the first alarm, over the loops that have one.

  [[nodiscard]] std::optional<double> f1() const;
};

/// A rule's results on the labelled steps.
struct StepScore {
  Count precision;  ///< Repetitions among the calls that the rule takes for one.
  Count recall;     ///< Calls that the rule takes for repetitions among the repetitions.

  [[nodiscard]] std::optional<double> f1() const;
};

using Group = std::vector<const ScoredRun*>;

/// Returns whether it was noticed by the run's first calls alone.
[[nodiscard]] bool noticed(const std::optional<Notice>& notice, int first_calls);

[[nodiscard]] RunCounts counts_of(const Group& group, int first_calls);
[[nodiscard]] Score score_of(const Group& group, Rule rule, int first_calls);
[[nodiscard]] StepScore step_score_of(const Group& group, Rule rule);

/// Returns the number of labelled steps that are not a tool call of their trace.
[[nodiscard]] int stray_steps(const ScoredRun& run);

}  // namespace watchdog::monitor
