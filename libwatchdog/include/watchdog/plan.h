/// \file
/// Planning without a time limit.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "watchdog/failure.h"
#include "watchdog/model.h"
#include "watchdog/result.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// A plan, in order. A plain value.
struct Plan {
  std::vector<std::string> steps{};
  bool simplified = false;  ///< The model could not make the whole plan and made a simpler one.
};

inline constexpr std::size_t plan_steps_max = 50;

/// Asks the model for a plan without a time limit, and reports the phase `planning`. After some
/// failures it asks once more, for a simpler plan. These failures are: no plan in the answer, half
/// an answer, a prompt that is too long, and the server's own error. It returns any other failure.
/// It reports a success as the state change `plan_generated`.
[[nodiscard]] Result<Plan, Failure> plan(const Model& model, ProgressTracker& tracker,
                                         std::string_view task, std::string_view context = {},
                                         const std::stop_token& stop = {});

}  // namespace watchdog
