/// \file
/// What a model says about a running session, as the progress document has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "codec/progress.h"
#include "predict/model.h"

namespace watchdog {

/// `reached`: the stages of the session so far. `calls`: its finished calls. Nothing: there is
/// nothing worth showing.
[[nodiscard]] std::optional<Estimate> estimate_of(const PredictionModel& model,
                                                  const Example& reached, std::int64_t calls,
                                                  std::string_view agent);

/// Returns true if the model may show something about sessions of this agent.
[[nodiscard]] bool has_estimates(const PredictionModel& model, std::string_view agent);

}  // namespace watchdog
