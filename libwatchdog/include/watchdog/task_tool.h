/// \file
/// The tool by which an agent gives a task to another agent: what it offers the model, and what its
/// owner allows.
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

/// What the model may ask for. Both bounds inclusive.
inline constexpr std::int64_t task_timeout_seconds_min = 30;
inline constexpr std::int64_t task_timeout_seconds_max = 3'600;
inline constexpr std::int64_t task_steps_min = 5;
inline constexpr std::int64_t task_steps_max = 200;

/// The tool as the APIs of models want it, as JSON: a function `task` of `{prompt, agent_type,
/// timeout_seconds, max_steps}`. Its description tells the model how budgets work.
[[nodiscard]] std::string task_tool_definition(const TaskToolSettings& settings);

/// A task, with the owner's limits where the model named none. A plain value.
struct TaskSpec {
  std::string prompt;
  std::string agent_type;
  AgentLimits limits{};
};

/// What the model wrote, read. Errors, for the model, naming field and range: `malformed` (no JSON,
/// a wrong type, a field missing), `invalid` (out of range, a type of agent that there is not).
[[nodiscard]] Result<TaskSpec> parse_task(std::string_view arguments,
                                          const TaskToolSettings& settings);

/// Where an agent runs: the one that gives a task, and the one that carries it out, which may give
/// tasks itself. A plain value; everything in it has to outlive the run.
struct TaskSite {
  ProgressTracker& tracker;
  /// What it may use up. Empty: nothing limits it.
  std::shared_ptr<ExecutionBudget> budget{};
  std::stop_token stop{};  ///< Asked for when it is cancelled; its tasks are then too.
  /// How its tasks report: database, clock, log, … Session, parent, agent and task are filled in.
  ProgressTracker::Config reporting{};
};

/// What a task came to, as the agent that carried it out says. A plain value.
struct TaskAnswer {
  Outcome outcome;
  std::string text;  ///< What it found or did; of an unfinished task, so far.
};

/// Carries a task out in a session of its own, to its end: usually with a `Run` on the site's
/// tracker, budget and stop. It counts steps and tokens at `site.budget`. Nothing of it may use the
/// site after it returned.
using TaskRunner = std::function<TaskAnswer(const TaskSpec& task, const TaskSite& site)>;

/// What the model that gave the task gets. A plain value.
struct TaskResult {
  std::string session{};  ///< Empty: it was not even started, because nothing was left for it.
  Outcome outcome;
  /// The runner's, where `ended_by` is set behind a line that says so.
  std::string text;
  BudgetFigures figures;                 ///< At the end.
  std::optional<BudgetAxis> ended_by{};  ///< Its budget ended it: what is there is partial.
};
/// `{outcome, reason, error?, partial, ended_by?, session_id?, text, budget}`.
[[nodiscard]] std::string to_json(const TaskResult& result);

/// Carries a task out in a child session and within a child's budget, and returns when it is over.
/// Meanwhile each of its steps is an event `subagent_step_progress` of the parent, of kind
/// `budget`, with the child's session in `call_id` and the child's figures. What goes wrong in the
/// task is an outcome, and a budget that ends it no failure but a partial result. If the runner did
/// not end its session, that is done here; an exception ends it as `failed / error`. Errors:
/// `exhausted` (tasks nested deeper than `budget_depth_max`). Thread-safe: several may run at once.
[[nodiscard]] Result<TaskResult> run_task(const TaskSpec& task, const TaskSite& parent,
                                          const TaskToolSettings& settings,
                                          const TaskRunner& runner);

}  // namespace watchdog
