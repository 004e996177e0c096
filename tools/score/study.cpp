// Studies the detector by changing its policy. A rule is left out by bounds that nothing reaches. A
// threshold, or a constant of the rules, is swept while all others stay. Each variant folds all
// runs again, in memory; marks are taken once. Intervals are of a bootstrap over tasks, because
// runs of one task are alike. Tasks are drawn with a fixed seed; the 2.5 and 97.5 percentiles are
// the interval.
#include "score/study.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "score/scoring.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

/// More than anything counts to.
constexpr double out_of_reach = 1e6;
constexpr int early_calls = 12;
constexpr int resamples = 1'000;

/// The counted facts of one run under one variant.
struct Mark {
  bool alarm = false;
  bool early_alarm = false;  ///< Within the first calls.
  bool doubt = false;        ///< Suspect, or an alarm.
  bool early_doubt = false;
};

/// A share of some runs, and what is counted of each.
struct Measure {
  const char* title;
  std::function<bool(const Label&, int calls)> counts;
  std::function<bool(const Mark&)> hit;
};

bool is_loop(const Label& label) {
  return label.loops.value_or(false);
}
bool is_success(const Label& label) {
  return label.outcome == RunOutcome::success && !is_loop(label);
}

const std::array<Measure, 7>& measures() {
  static const std::array<Measure, 7> all{
      Measure{"loops confirmed", [](const Label& label, int) { return is_loop(label); },
              [](const Mark& mark) { return mark.alarm; }},
      Measure{"in the first 12 calls",
              [](const Label& label, int calls) { return is_loop(label) && calls >= early_calls; },
              [](const Mark& mark) { return mark.early_alarm; }},
      Measure{"loops at least suspect", [](const Label& label, int) { return is_loop(label); },
              [](const Mark& mark) { return mark.doubt; }},
      Measure{"suspect in the first 12",
              [](const Label& label, int calls) { return is_loop(label) && calls >= early_calls; },
              [](const Mark& mark) { return mark.early_doubt; }},
      Measure{"alarms, no loop",
              [](const Label& label, int) { return label.loops.has_value() && !is_loop(label); },
              [](const Mark& mark) { return mark.alarm; }},
      Measure{"alarms on successes", [](const Label& label, int) { return is_success(label); },
              [](const Mark& mark) { return mark.alarm; }},
      Measure{"successes at least suspect",
              [](const Label& label, int) { return is_success(label); },
              [](const Mark& mark) { return mark.doubt; }}};
  return all;
}

/// The runs, each with its marks under one variant.
struct Judged {
  const Label* label;
  int calls = 0;
  Mark mark;
};

Mark mark_of(const Finding& finding) {
  return {.alarm = noticed(finding.alarm, 0),
          .early_alarm = noticed(finding.alarm, early_calls),
          .doubt = noticed(finding.alarm, 0) || noticed(finding.suspicion, 0),
          .early_doubt =
              noticed(finding.alarm, early_calls) || noticed(finding.suspicion, early_calls)};
}

Count count_of(const std::vector<Judged>& runs, const Measure& measure) {
  Count count;
  for (const auto& run : runs)
    if (measure.counts(*run.label, run.calls)) count.add(measure.hit(run.mark));
  return count;
}

/// The interval of a share when tasks are drawn instead of runs.
Interval by_task(const std::vector<Judged>& runs, const Measure& measure) {
  std::map<std::string, Count> tasks;
  for (const auto& run : runs) {
    if (!measure.counts(*run.label, run.calls)) continue;
    const auto& task = run.label->task_key.empty() ? run.label->id : run.label->task_key;
    tasks[task].add(measure.hit(run.mark));
  }
  if (tasks.empty()) return {};
  std::vector<Count> list;
  int hits = 0;
  int of = 0;
  for (const auto& [task, count] : tasks) {
    list.push_back(count);
    hits += count.is;
    of += count.of;
  }
  // A bootstrap says nothing where all are the same.
  if (hits == 0 || hits == of) {
    return interval_of(
        {.is = hits == 0 ? 0 : static_cast<int>(list.size()), .of = static_cast<int>(list.size())});
  }
  std::mt19937 random(1);
  std::vector<double> shares;
  for (int i = 0; i < resamples; ++i) {
    Count drawn;
    for (std::size_t j = 0; j < list.size(); ++j) {
      const auto& count = list[random() % list.size()];
      drawn.is += count.is;
      drawn.of += count.of;
    }
    shares.push_back(drawn.share().value_or(0));
  }
  std::sort(shares.begin(), shares.end());
  constexpr std::size_t tail = resamples / 40;
  return {.low = shares[tail], .high = shares[resamples - 1 - tail]};
}

std::string two_digits(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", number);
  return text.data();
}

std::string short_number(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", number);
  return text.data();
}

std::string cell_of(const std::vector<Judged>& runs, const Measure& measure, bool with_interval) {
  const auto count = count_of(runs, measure);
  if (count.of == 0) return "–";
  auto text = std::to_string(count.is) + "/" + std::to_string(count.of);
  if (!with_interval) return text;
  const auto [low, high] = by_task(runs, measure);
  return text + " [" + two_digits(low) + " – " + two_digits(high) + "]";
}

std::string head_of(const std::string& first) {
  std::string line = "| " + first + " |";
  std::string rule = "|---|";
  for (const auto& measure : measures()) {
    line += std::string(" ") + measure.title + " |";
    rule += "---|";
  }
  return line + "\n" + rule + "\n";
}

std::string row_of(const std::string& first, const std::vector<Judged>& runs,
                   bool with_interval = false) {
  std::string line = "| " + first + " |";
  for (const auto& measure : measures()) line += " " + cell_of(runs, measure, with_interval) + " |";
  return line + "\n";
}

Bounds& bounds_of(Policy& policy, Pattern pattern) {
  return policy.patterns[static_cast<std::size_t>(pattern)];
}

constexpr std::array studied_patterns = {
    Pattern::same_call,      Pattern::same_failing_call, Pattern::cycle_of_calls,
    Pattern::repeated_calls, Pattern::same_error,        Pattern::invalid_calls,
    Pattern::same_message,   Pattern::messages_only,     Pattern::repeated_text,
    Pattern::nothing_new,    Pattern::restated_text,     Pattern::same_failure,
    Pattern::rephrased_calls};

/// All runs under a policy.
class Study {
 public:
  explicit Study(std::vector<StudyRun> runs) : runs_(std::move(runs)) {
    for (auto& run : runs_)
      for (auto& line : run.lines) mark(line.report);
    std::vector<ScoredRun> scored;
    auto findings = this->findings({});
    for (std::size_t i = 0; i < runs_.size(); ++i)
      scored.push_back({.label = runs_[i].label, .findings = std::move(findings[i]), .steps = {}});
    count_once(scored);
    std::size_t at = 0;
    std::erase_if(runs_, [&](const StudyRun&) { return !scored[at++].pooled; });
  }

  [[nodiscard]] std::vector<Findings> findings(const Policy& policy) const {
    std::vector<Findings> all;
    all.reserve(runs_.size());
    for (const auto& run : runs_) {
      Evaluation evaluation(policy);
      for (const auto& line : run.lines) evaluation.fold(line);
      all.push_back(evaluation.findings());
    }
    return all;
  }
  [[nodiscard]] std::vector<Judged> judged(const std::vector<Findings>& findings, Rule rule) const {
    std::vector<Judged> judged;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      judged.push_back({.label = &runs_[i].label,
                        .calls = findings[i].calls,
                        .mark = mark_of(findings[i].of(rule))});
    }
    return judged;
  }
  [[nodiscard]] std::vector<Judged> judged(const Policy& policy) const {
    return judged(findings(policy), Rule::detector);
  }

 private:
  std::vector<StudyRun> runs_;
};

std::string rules_beside_peers(const Study& study) {
  std::string text = "## The detector beside other rules\n\n" + head_of("Rule");
  const auto findings = study.findings({});
  for (const auto rule : rules)
    text += row_of(std::string(name_of(rule)), study.judged(findings, rule), true);
  std::map<std::string, std::vector<Judged>> sources;
  std::map<std::string, std::vector<Judged>> splits;
  for (const auto& run : study.judged(findings, Rule::detector)) {
    sources[run.label->source].push_back(run);
    if (!run.label->split.empty()) splits[run.label->split].push_back(run);
  }
  text += "\n## By source\n\n" + head_of("Source");
  for (const auto& [source, runs] : sources) text += row_of(source, runs);
  text += "\n## By split\n\n" + head_of("Split");
  for (const auto& [split, runs] : splits) text += row_of(split, runs, true);
  return text;
}

std::string each_left_out(const Study& study) {
  std::string text = "\n## Each rule left out\n\n" + head_of("Without");
  text += row_of("(nothing left out)", study.judged(Policy{}));
  for (const auto pattern : studied_patterns) {
    Policy policy;
    bounds_of(policy, pattern) = {out_of_reach, 0};
    if (pattern == Pattern::repeated_calls) policy.repeated_of_20 = out_of_reach;
    text += row_of(std::string(name_of(pattern)), study.judged(policy));
  }
  return text;
}

/// A threshold and the values that it is tried at; the default is among them.
struct Sweep {
  std::string name;
  std::vector<double> values;
  std::function<double(Policy&, double)> exchange;  ///< Sets it; returns what it was.
};

std::vector<Sweep> sweeps() {
  const auto suspect = [](Pattern pattern, std::vector<double> values) {
    return Sweep{std::string(name_of(pattern)) + " suspect", std::move(values),
                 [pattern](Policy& policy, double value) {
                   return std::exchange(bounds_of(policy, pattern).suspect, value);
                 }};
  };
  const auto stuck = [](Pattern pattern, std::vector<double> values) {
    return Sweep{std::string(name_of(pattern)) + " stuck", std::move(values),
                 [pattern](Policy& policy, double value) {
                   return std::exchange(bounds_of(policy, pattern).stuck, value);
                 }};
  };
  return {
      suspect(Pattern::repeated_calls, {1.5, 2, 2.5}),
      stuck(Pattern::repeated_calls, {2, 2.25, 2.5, 2.75, 3, 3.5, 4.5}),
      {"repeatedOf20",
       {3, 3.5, 4, 4.5, 5, 6, 8},
       [](Policy& policy, double value) { return std::exchange(policy.repeated_of_20, value); }},
      stuck(Pattern::same_call, {4, 5, 6}),
      stuck(Pattern::same_failing_call, {4, 5, 6}),
      stuck(Pattern::cycle_of_calls, {3, 4, 5}),
      stuck(Pattern::same_error, {6, 8, 10}),
      suspect(Pattern::nothing_new, {6, 8, 10}),
      stuck(Pattern::nothing_new, {15, 25, 35}),
      suspect(Pattern::restated_text, {4, 6, 8, 10, 12, 16}),
      suspect(Pattern::same_failure, {3, 4, 5, 6, 8}),
      suspect(Pattern::rephrased_calls, {3, 4, 5, 6, 8})};
}

/// The constants of the rules that no setting changes.
std::vector<Sweep> constants() {
  using Weights = RepetitionWeights;
  const auto real = [](const char* name, std::vector<double> values, double Weights::*member) {
    return Sweep{name, std::move(values), [member](Policy& policy, double value) {
                   return std::exchange(policy.weights.*member, value);
                 }};
  };
  const auto whole = [](const char* name, std::vector<double> values, int Weights::*member) {
    return Sweep{name, std::move(values), [member](Policy& policy, double value) {
                   return static_cast<double>(
                       std::exchange(policy.weights.*member, static_cast<int>(value)));
                 }};
  };
  return {whole("R4 rounds compared", {4, 5, 6, 7, 8}, &Weights::window),
          real("R4 repeated", {0.75, 1, 1.25}, &Weights::repeated_once),
          real("R4 repeated more", {1, 1.5, 2}, &Weights::repeated_more),
          real("R4 nearly repeated", {0, 0.5, 0.75, 1}, &Weights::nearly_once),
          real("R4 nearly repeated more", {0, 0.75, 1, 1.5}, &Weights::nearly_more),
          real("R4 fails alike", {0, 0.25, 0.5, 0.75}, &Weights::failed_alike),
          real("R4 decay", {0.5, 0.75, 1}, &Weights::decay),
          real("R4 similarity", {0.1, 0.2, 0.3, 0.4, 0.5}, &Weights::similar_min),
          real("R4 after something new", {0.25, 0.5, 0.75, 1}, &Weights::tested_again),
          real("R4 after something new, often", {0, 0.25, 0.5}, &Weights::tested_often),
          real("R4 credit of a state", {0, 1.5, 3}, &Weights::credit),
          whole("second pass over at least", {6, 8, 10, 12, 14, 16}, &Weights::pass_min),
          real("R12 said before", {0.65, 0.7, 0.75, 0.8, 0.85}, &Weights::restated_share),
          real("R12 new", {0.4, 0.5, 0.6}, &Weights::new_share),
          whole("R13 rounds without the failure", {10, 20, 40}, &Weights::failure_rounds),
          real("R14 similarity", {0.2, 0.3, 0.4, 0.5}, &Weights::rephrased_min),
          whole("R11 a new round subtracts", {1, 2, 3}, &Weights::new_round_subtracts)};
}

std::string table_of(const Study& study, const std::string& title,
                     const std::vector<Sweep>& sweeps) {
  std::string text = "\n## Each " + title + " at several values\n\n";
  text += head_of("Value of the " + title);
  for (const auto& sweep : sweeps) {
    for (const double value : sweep.values) {
      Policy policy;
      const double chosen = sweep.exchange(policy, value);
      const auto name = sweep.name + " " + short_number(value);
      text += row_of(value == chosen ? "**" + name + "**" : name, study.judged(policy));
    }
  }
  return text;
}

/// All bounds of confirmation, or of suspicion, times a factor.
std::string curve(const Study& study) {
  std::string text =
      "\n## Early recall against alarms on successes\n\n" + head_of("All counts of calls times");
  for (const double factor : {0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0}) {
    Policy policy;
    for (const auto pattern :
         {Pattern::same_call, Pattern::same_failing_call, Pattern::cycle_of_calls,
          Pattern::repeated_calls, Pattern::same_error, Pattern::nothing_new}) {
      auto& bounds = bounds_of(policy, pattern);
      bounds = {bounds.suspect * factor, bounds.stuck * factor};
    }
    for (const auto pattern :
         {Pattern::restated_text, Pattern::same_failure, Pattern::rephrased_calls})
      bounds_of(policy, pattern).suspect *= factor;
    policy.repeated_of_20 *= factor;
    const auto name = short_number(factor);
    text += row_of(factor == 1 ? "**" + name + "**" : name, study.judged(policy), true);
  }
  return text;
}

}  // namespace

std::string study(std::vector<StudyRun> runs) {
  const Study all(std::move(runs));
  return rules_beside_peers(all) + each_left_out(all) + table_of(all, "threshold", sweeps()) +
         table_of(all, "constant", constants()) + curve(all);
}

}  // namespace watchdog::monitor
