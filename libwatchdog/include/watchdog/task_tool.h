/// \file
/// The tool by which an agent gives a task to another agent: its form for the model, and its
/// owner's limits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "watchdog/budget.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// Limits of a task for one type of agent, if the model names none. Empty: steps are not limited,
/// the timeout is the tool's own. A plain value.
struct AgentLimits {
  std::optional<std::int64_t> steps{};
  std::optional<Millis> timeout{};
};

/// Configuration of the tool. Any positive value is allowed here; the ranges for the model (30 to
/// 3600 seconds, 5 to 200 steps) apply to its arguments only. A plain value.
struct TaskToolSettings {
  Millis default_timeout{600'000};
  /// The types of agents that the model may ask for.
  std::map<std::string, AgentLimits> agents{{"plan", {.steps = 50, .timeout = Millis{600'000}}},
                                            {"explore", {.steps = 30, .timeout = Millis{300'000}}}};
  /// For every task. Timeouts are only shown to the model unless `enforce_time` is set here, or the
  /// parent's time is enforced.
  BudgetThresholds thresholds{};
};

/// The ranges of the model's arguments, inclusive.
inline constexpr std::int64_t task_timeout_seconds_min = 30;
inline constexpr std::int64_t task_timeout_seconds_max = 3'600;
inline constexpr std::int64_t task_steps_min = 5;
inline constexpr std::int64_t task_steps_max = 200;

/// Returns the tool in the form of the models' APIs, as JSON: a function `task` of `{prompt,
/// agent_type, timeout_seconds, max_steps}`. Its description explains budgets to the model.
[[nodiscard]] std::string task_tool_definition(const TaskToolSettings& settings);

/// A task, with the owner's limits for those that the model left out. A plain value.
struct TaskSpec {
  std::string prompt{};
  std::string agent_type{};
  AgentLimits limits{};
};

/// Reads the model's arguments. Errors, for the model, naming field and range: `malformed` (not
/// JSON, a wrong type, a missing field), `invalid` (out of range, an unknown type of agent).
[[nodiscard]] Result<TaskSpec> parse_task(std::string_view arguments,
                                          const TaskToolSettings& settings);

/// The surroundings of an agent: of the one that gives a task, and of the one that does it, which
/// may give tasks itself. A plain value; everything in it must outlive the run.
struct TaskSite {
  ProgressTracker& tracker;
  /// Its limits. Empty: none.
  std::shared_ptr<ExecutionBudget> budget{};
  std::stop_token stop{};  ///< Requested when it is cancelled; its tasks then are too.
  /// How its tasks report: database, clock, log, … Session, parent, agent and task are set for
  /// each.
  ProgressTracker::Config reporting{};
};

/// The result of a task, as its agent reports it. A plain value.
struct TaskAnswer {
  Outcome outcome{};
  std::string text{};  ///< The findings; of an unfinished task, those so far.
};

/// Does a task in a session of its own, to its end: usually with a `Run` on the site's tracker,
/// budget and stop. It charges steps and tokens to `site.budget`. It must not use the site after it
/// returned.
using TaskRunner = std::function<TaskAnswer(const TaskSpec& task, const TaskSite& site)>;

/// The result for the model that gave the task. A plain value.
struct TaskResult {
  std::string session{};  ///< Empty: the task was not started, because its budget was used up.
  Outcome outcome{};
  /// The runner's text; with `ended_by`, after a line that says so.
  std::string text{};
  BudgetFigures figures{};               ///< At the end.
  std::optional<BudgetAxis> ended_by{};  ///< Its budget ended it: the result is partial.
};
/// `{outcome, reason, error?, partial, ended_by?, session_id?, text, budget}`.
[[nodiscard]] std::string to_json(const TaskResult& result);

/// Runs a task in a child session with a child's budget, and returns when it is over. Each of its
/// steps is meanwhile an event `subagent_step_progress` of the parent, of kind `budget`, with the
/// child's session in `call_id` and the child's figures. An error of the task is an outcome, and
/// the end of a budget is a partial result. If the runner did not end its session, that is done
/// here; an exception ends it as `failed / error`. Errors: `exhausted` (tasks nested deeper than
/// `budget_depth_max`). Thread-safe: several may run at once.
[[nodiscard]] Result<TaskResult> run_task(const TaskSpec& task, const TaskSite& parent,
                                          const TaskToolSettings& settings,
                                          const TaskRunner& runner);

}  // namespace watchdog
