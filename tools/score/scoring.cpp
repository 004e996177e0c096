// Precision and recall use labelled runs only. False alarms use successful runs that no label calls
// a loop, also unlabelled ones. A score over the first K calls takes runs of at least K calls, and
// only notices by call K. One that needs the run's end comes too late. Of a run in two sources the
// twin has the same task, then the same calls, then the closest length. The twin gives way, unless
// it alone has a label.
#include "score/scoring.h"

#include <algorithm>
#include <cstdlib>

namespace watchdog::monitor {
namespace {

bool has_calls(const ScoredRun& run, int first_calls) {
  return run.findings.calls >= first_calls;
}

/// A success that no label calls a loop: an alarm there is false.
bool is_innocent(const Label& label) {
  return label.outcome == RunOutcome::success && !label.loops.value_or(false);
}

std::optional<double> median(std::vector<int> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

std::optional<double> f1_of(const Count& precision, const Count& recall) {
  if (recall.of == 0) return {};
  return 2.0 * recall.is / (precision.of + recall.of);
}

const Step* find_step(const ScoredRun& run, std::int64_t seq) {
  const auto& steps = run.findings.steps;
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.seq == seq; });
  return found != steps.end() ? &*found : nullptr;
}

bool same_calls(const ScoredRun& a, const ScoredRun& b) {
  return std::equal(a.findings.steps.begin(), a.findings.steps.end(), b.findings.steps.begin(),
                    b.findings.steps.end(),
                    [](const Step& one, const Step& other) { return one.call == other.call; });
}

/// The run of `whowhen` that a marked run is as well. Several may have its task: then it is the one
/// with the same calls, else the one closest in length.
ScoredRun* twin_of(const ScoredRun& marked, std::vector<ScoredRun>& runs) {
  const auto distance = [&](const ScoredRun& run) {
    return std::pair(!same_calls(run, marked),
                     std::abs(run.findings.events - marked.findings.events));
  };
  ScoredRun* twin = nullptr;
  for (auto& run : runs) {
    if (run.label.source != "whowhen" || run.label.task_key != marked.label.task_key) continue;
    if (run.pooled && (twin == nullptr || distance(run) < distance(*twin))) twin = &run;
  }
  return twin;
}

}  // namespace

std::optional<double> Count::share() const {
  return of > 0 ? std::optional(static_cast<double>(is) / of) : std::nullopt;
}

Interval interval_of(const Count& count) {
  return wilson(count.is, count.of);
}

void count_once(std::vector<ScoredRun>& runs) {
  for (auto& run : runs) {
    if (!run.label.overlaps_whowhen || run.label.source == "whowhen") continue;
    if (run.label.task_key.empty()) continue;
    auto* twin = twin_of(run, runs);
    if (twin == nullptr) continue;
    (twin->label.loops && !run.label.loops ? run : *twin).pooled = false;
  }
}

std::optional<double> Score::f1() const {
  return f1_of(precision, recall);
}
std::optional<double> StepScore::f1() const {
  return f1_of(precision, recall);
}

bool noticed(const std::optional<Notice>& notice, int first_calls) {
  if (!notice) return false;
  return first_calls == 0 || (notice->calls <= first_calls && !notice->at_end);
}

RunCounts counts_of(const Group& group, int first_calls) {
  RunCounts counts;
  for (const auto* run : group) {
    if (!has_calls(*run, first_calls)) continue;
    ++counts.runs;
    if (run->label.loops) ++(*run->label.loops ? counts.loops : counts.others);
    if (is_innocent(run->label)) ++counts.successes;
  }
  return counts;
}

Score score_of(const Group& group, Rule rule, int first_calls) {
  Score score;
  std::vector<int> calls;
  for (const auto* run : group) {
    if (!has_calls(*run, first_calls)) continue;
    const auto& finding = run->findings.of(rule);
    const auto& label = run->label;
    const bool alarmed = noticed(finding.alarm, first_calls);
    if (label.loops && alarmed) score.precision.add(*label.loops);
    if (label.loops.value_or(false)) {
      score.recall.add(alarmed);
      if (alarmed) calls.push_back(finding.alarm->calls);
    }
    if (is_innocent(label)) {
      score.false_alarms.add(alarmed);
      score.suspects.add(noticed(finding.suspicion, first_calls));
    }
  }
  score.median_call = median(std::move(calls));
  return score;
}

StepScore step_score_of(const Group& group, Rule rule) {
  StepScore score;
  for (const auto* run : group) {
    for (const auto& judged : run->steps) {
      const auto* step = find_step(*run, judged.seq);
      const bool repeated = step != nullptr && step->repeated[place_of(rule)];
      if (repeated) score.precision.add(judged.repetition);
      if (judged.repetition) score.recall.add(repeated);
    }
  }
  return score;
}

int stray_steps(const ScoredRun& run) {
  return static_cast<int>(std::count_if(
      run.steps.begin(), run.steps.end(),
      [&](const StepLabel& judged) { return find_step(run, judged.seq) == nullptr; }));
}

}  // namespace watchdog::monitor
