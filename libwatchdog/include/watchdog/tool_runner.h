/// \file
/// The tools of an agent: runs the calls that its model requests, reports them to the session, and
/// accepts aborts from other processes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/executor.h"
#include "watchdog/model_client.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/run.h"
#include "watchdog/time.h"
#include "watchdog/tool.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// Limits of a task for one type of agent, if the model names none. Empty: steps are not limited,
/// the timeout is the tool's own. A plain value.
struct AgentLimits {
  std::optional<std::int64_t> steps{};  ///< Steps of the agent; empty: not limited.
  std::optional<Millis> timeout{};      ///< Empty: the tool's own.
};

/// Configuration of the tool. Any positive value is allowed here; the ranges for the model (30 to
/// 3600 seconds, 5 to 200 steps) apply to its arguments only. A plain value.
struct TaskToolSettings {
  /// If neither the model nor the type of agent names one.
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
inline constexpr std::int64_t task_timeout_seconds_max =
    3'600;  ///< The longest timeout that a model may ask for.
inline constexpr std::int64_t task_steps_min = 5;    ///< The fewest steps that a model may ask for.
inline constexpr std::int64_t task_steps_max = 200;  ///< The most steps that a model may ask for.

/// Returns the tool in the form of the models' APIs, as JSON: a function `task` of `{prompt,
/// agent_type, timeout_seconds, max_steps}`. Its description explains budgets to the model.
[[nodiscard]] std::string task_tool_definition(const TaskToolSettings& settings);

/// A task, with the owner's limits for those that the model left out. A plain value.
struct TaskSpec {
  std::string prompt{};      ///< What to do.
  std::string agent_type{};  ///< The type of agent; empty: not named.
  AgentLimits limits{};      ///< The limits of the task.
};

/// Reads the model's arguments. Errors, for the model, naming field and range: `malformed` (not
/// JSON, a wrong type, a missing field), `invalid` (out of range, an unknown type of agent).
[[nodiscard]] Result<TaskSpec> parse_task(std::string_view arguments,
                                          const TaskToolSettings& settings);

/// The surroundings of an agent: of the one that gives a task, and of the one that does it, which
/// may give tasks itself. A plain value; everything in it must outlive the run.
struct TaskSite {
  ProgressTracker& tracker;  ///< The session of the task.
  /// Its limits. Empty: none.
  std::shared_ptr<ExecutionBudget> budget{};
  std::stop_token stop{};  ///< Requested when it is cancelled; its tasks then are too.
  /// How its tasks report: database, clock, log, … Session, parent, agent and task are set for
  /// each.
  ProgressTracker::Config reporting{};
};

/// The result of a task, as its agent reports it. A plain value.
struct TaskAnswer {
  Outcome outcome{};   ///< How the task ended.
  std::string text{};  ///< The findings; of an unfinished task, those so far.
};

/// Does a task in a session of its own, to its end: usually with a `Run` on the site's tracker,
/// budget and stop. It charges steps and tokens to `site.budget`. It must not use the site after it
/// returned.
using TaskRunner = std::function<TaskAnswer(const TaskSpec& task, const TaskSite& site)>;

/// The result for the model that gave the task. A plain value.
struct TaskResult {
  std::string session{};  ///< Empty: the task was not started, because its budget was used up.
  Outcome outcome{};      ///< How the task ended.
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

/// The outcomes of a session's calls so far. A plain value.
struct ToolTally {
  std::int64_t calls = 0;                           ///< Calls with an outcome.
  std::int64_t errors = 0;                          ///< Failed calls.
  std::int64_t timeouts = 0;                        ///< Calls that a limit ended.
  std::int64_t denied = 0;                          ///< Calls that were not run.
  std::map<std::string, std::int64_t> timed_out{};  ///< Timeouts of each tool, at most 100 tools.
};

/// Reports turns and calls to a session: each call and its result, progress every five seconds,
/// timeouts, late returns. Thread-safe.
class ToolReporter {
 public:
  /// REQUIRES: the tracker outlives it.
  explicit ToolReporter(ProgressTracker& tracker) : tracker_(tracker) {}
  ~ToolReporter();
  ToolReporter(const ToolReporter&) = delete;
  ToolReporter& operator=(const ToolReporter&) = delete;

  /// Reports an event of a call.
  void on_event(const ToolEvent& event);
  /// Reports an event of a turn.
  void on_event(const TurnEvent& event);
  /// Its name before 0.2; goes with 0.3.
  void take(const ToolEvent& event) { on_event(event); }
  /// Its name before 0.2; goes with 0.3.
  void take(const TurnEvent& event) { on_event(event); }
  /// From now on an abort of a turn or a call of the session, from any process, takes effect here.
  /// REQUIRES: the registry outlives this object.
  void obey(TurnRegistry& turns);
  /// Returns the counts so far.
  [[nodiscard]] ToolTally tally() const;

 private:
  void report_result(const ToolEvent& event, const CallReport& report);

  ProgressTracker& tracker_;
  bool obeys_ = false;
  mutable std::mutex mutex_;
  ToolTally tally_;
};

/// An executor, its turns and their reports for one session. Thread-safe.
class ToolRunner {
 public:
  /// Parts of a runner. The tracker must outlive it.
  struct Parts {
    ProgressTracker& tracker;  ///< Gets all reports.
    /// Gets a tool `session_status`, with which the agent can look at itself.
    std::shared_ptr<ToolRegistry> tools{};
    std::shared_ptr<ExecutionBudget> budget{};  ///< The run's.
    std::string agent{};                        ///< The name of the agent, for the list of turns.
    /// Of the executor; `tools` and `observer` are filled in.
    ToolExecutor::Parts executor{};
    /// Receives each event as well. May be empty.
    std::function<void(const ToolEvent&)> observer{};
  };
  /// Starts no thread before the first call.
  explicit ToolRunner(Parts parts, ExecutorOptions options = {});
  ~ToolRunner();
  ToolRunner(const ToolRunner&) = delete;
  ToolRunner& operator=(const ToolRunner&) = delete;

  /// Returns the definitions for ChatRequest::tools.
  [[nodiscard]] std::string definitions() const;

  /// Runs the calls that the model requested in this iteration, as a turn that ends with the run.
  /// Returns one report for each call, in their order.
  [[nodiscard]] std::vector<CallReport> carry_out(Iteration& now,
                                                  std::span<const ToolRequest> calls);

  /// Returns the turns of the session.
  [[nodiscard]] TurnRegistry& turns() noexcept;
  /// Returns the executor.
  [[nodiscard]] ToolExecutor& executor() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Returns the outcomes for the conversation: one message of role `tool` for each.
[[nodiscard]] std::vector<ChatMessage> tool_messages(std::span<const CallReport> reports);

/// Repairs a conversation so that every API accepts it: each message with tool calls is followed by
/// exactly one answer for each of them, in their order. A missing answer is added as cancelled; an
/// answer without a call, or a second one, is dropped. Returns true if something was changed.
bool repair_history(std::vector<ChatMessage>& conversation);

}  // namespace watchdog
