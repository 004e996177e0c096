/// \file
/// The tool by which an agent gives a task to another agent: what it offers the model, and what its
/// owner allows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "watchdog/budget.h"
#include "watchdog/time.h"

namespace watchdog {

/// What a task of one type of agent may use up where the model does not say. An empty one: steps
/// are not limited, the timeout is the tool's own. A plain value.
struct AgentLimits {
  std::optional<std::int64_t> steps{};
  std::optional<Millis> timeout{};
};

/// Configuration of the tool. Any positive value is allowed here; the ranges that the model has to
/// keep to (30 to 3600 seconds, 5 to 200 steps) hold for its arguments only. A plain value.
struct TaskToolSettings {
  Millis default_timeout{600'000};
  /// The types of agents that the model may ask for.
  std::map<std::string, AgentLimits> agents{{"plan", {.steps = 50, .timeout = Millis{600'000}}},
                                            {"explore", {.steps = 30, .timeout = Millis{300'000}}}};
  /// Of every task. Timeouts are advice unless `enforce_time` is set here, or where the parent's
  /// time is enforced.
  BudgetThresholds thresholds{};
};

}  // namespace watchdog
