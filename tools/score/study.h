/// \file
/// The worth of each rule and each threshold of the detector, on labelled runs.
#pragma once

#include <string>
#include <vector>

#include "ingest/trace.h"
#include "score/labels.h"

namespace watchdog::monitor {

/// A labelled run with its lines. A plain value.
struct StudyRun {
  Label label;
  std::vector<TraceLine> lines;
};

/// Folds all runs once for each variant of the policy, and returns tables in Markdown: the rules of
/// peers, the sources, the splits, and each rule left out. Each threshold of the policy and each
/// constant of the rules is tried at several values. The last table is the curve of early recall
/// against alarms on successes. Intervals are by task. Deterministic.
[[nodiscard]] std::string study(std::vector<StudyRun> runs);

}  // namespace watchdog::monitor
