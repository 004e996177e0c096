/// \file
/// What `predict` says of a model and its measures, as JSON and for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "predict/training.h"

namespace watchdog::monitor {

using PredictionMeasures = std::vector<std::optional<StageMeasures>>;

/// Prints the tables and the reliability picture.
void print_measures(const PredictionMeasures& stages);
/// Prints for each agent what is shown and what stays hidden, and why.
void print_verdicts(const PredictionModel& model);

/// Returns the members of a JSON object, without braces.
[[nodiscard]] std::string measures_json(const PredictionMeasures& stages);
[[nodiscard]] std::string verdicts_json(const PredictionModel& model);

}  // namespace watchdog::monitor
