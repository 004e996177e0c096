// `run_task` takes a budget from the parent's first. A cancelled parent or a used-up budget ends
// the task before it has a session. Otherwise the task gets a session of its own and runs on this
// thread, and its steps are reported to the parent. An exception of the runner is a failed outcome.
// A task that its budget ended is incomplete and names the axis; its text begins with a mark.
#include <exception>
#include <utility>

#include "codec/budget.h"
#include "privacy/content.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"
#include "watchdog/tool_runner.h"
#include "watchdog/tracker.h"

namespace watchdog {
namespace {

/// The part of a prompt that is shown as the session's task.
constexpr std::size_t shown_chars = 1'000;

/// Says in the outcome that this axis is used up.
void name_axis(Outcome& outcome, BudgetAxis axis) {
  const bool time = axis == BudgetAxis::time;
  outcome.reason = time ? reasons::budget_time : reasons::budget_exhausted;
  outcome.subject = time ? std::string_view() : name_of(axis);
}

/// The axis whose end an outcome names; else, of an unfinished task, what is used up.
std::optional<BudgetAxis> ending_axis(const Outcome& outcome, const BudgetView& budget) {
  if (outcome.kind != OutcomeKind::incomplete) return std::nullopt;
  if (outcome.reason == reasons::budget_time) return BudgetAxis::time;
  if (outcome.reason == reasons::budget_exhausted) {
    if (const auto axis = named<BudgetAxis>(outcome.subject)) return axis;
  }
  // An author's own loop may say so of its steps.
  if (outcome.reason == reasons::max_iterations_reached &&
      budget.finalizing() == BudgetAxis::steps) {
    return BudgetAxis::steps;
  }
  return outcome.reason.empty() ? budget.exhausted() : std::nullopt;
}

/// "30 of 30 used"
std::string spent(const BudgetFigures& figures, BudgetAxis axis) {
  const auto of = [](auto used, auto limit) {
    const auto all = limit ? " of " + std::to_string(*limit) : std::string();
    return std::to_string(used) + all + " used";
  };
  switch (axis) {
    case BudgetAxis::steps:
      return of(figures.steps, figures.limits.steps);
    case BudgetAxis::tool_calls:
      return of(figures.tool_calls, figures.limits.tool_calls);
    case BudgetAxis::tokens:
      return of(figures.tokens, figures.limits.tokens);
    case BudgetAxis::cost:
      return of(figures.cost, figures.limits.cost);
    case BudgetAxis::time:
      break;
  }
  return std::to_string(elapsed_seconds(figures)) + " seconds used";
}

/// The line by which the model sees that the text behind it is not the whole.
std::string mark_of(const BudgetFigures& figures, BudgetAxis axis, bool has_text) {
  const auto what = axis == BudgetAxis::tool_calls ? "tool calls" : std::string(name_of(axis));
  return std::string(axis == BudgetAxis::time ? "[TIMEOUT" : "[PARTIAL RESULT") +
         ": the task ran out of " + what + " (" + spent(figures, axis) + "). " +
         (has_text ? "What it had so far follows.]\n" : "It had no result yet.]");
}

TaskResult finished(std::string session, TaskAnswer answer, const BudgetView& budget) {
  TaskResult result{.session = std::move(session),
                    .outcome = with_subject(std::move(answer.outcome)),
                    .text = std::move(answer.text),
                    .figures = budget.figures()};
  result.ended_by = ending_axis(result.outcome, budget);
  if (result.ended_by) {
    name_axis(result.outcome, *result.ended_by);
    result.text = mark_of(result.figures, *result.ended_by, !result.text.empty()) + result.text;
  }
  return result;
}

/// An exception is what the task came to, like any failure.
TaskAnswer answer_of(const TaskRunner& runner, const TaskSpec& task, const TaskSite& site) {
  std::string error = "the task's runner threw something that is not an exception";
  try {
    return runner(task, site);
  } catch (const std::exception& thrown) {
    error = thrown.what();
  } catch (...) {
  }
  return {.outcome = {.kind = OutcomeKind::failed,
                      .reason = std::string(reasons::error),
                      .error = std::move(error)},
          .text = {}};
}

/// Ends the session with its outcome, unless it has ended: then the tracker refuses (`conflict`).
/// An unreachable store does not delay the result: the end stays queued.
void end(ProgressTracker& tracker, Outcome outcome) {
  if (outcome.reason.empty()) {
    constexpr std::string_view usual[] = {reasons::task_complete, reasons::error,
                                          reasons::unspecified, reasons::cancelled};
    outcome.reason = usual[static_cast<std::size_t>(outcome.kind)];
    if (outcome.kind == OutcomeKind::cancelled) outcome.subject = reasons::parent;
  }
  (void)tracker.end(std::move(outcome));
}

}  // namespace

Result<TaskResult> run_task(const TaskSpec& task, const TaskSite& parent,
                            const TaskToolSettings& settings, const TaskRunner& runner) {
  const auto above =
      parent.budget ? parent.budget : std::make_shared<ExecutionBudget>(*parent.reporting.clock);
  const auto child = ExecutionBudget::child(
      above, {.steps = task.limits.steps, .duration = task.limits.timeout}, settings.thresholds);
  if (!child) return child.error();
  const auto& budget = *child;
  if (parent.stop.stop_requested()) {
    return finished({},
                    {.outcome = {.kind = OutcomeKind::cancelled,
                                 .reason = std::string(reasons::cancelled),
                                 .subject = std::string(reasons::parent)},
                     .text = {}},
                    *budget);
  }
  if (budget->exhausted()) {
    return finished({}, {.outcome = {.kind = OutcomeKind::incomplete}, .text = {}}, *budget);
  }

  auto config = parent.reporting;
  config.session.clear();
  config.spec.parent = parent.tracker.session();
  config.spec.agent = first_characters(task.agent_type, label_bytes_max / 4);
  config.spec.task = first_characters(redact(task.prompt), shown_chars);
  ProgressTracker tracker(std::move(config));
  tracker.report(budget_report(budget_reports::update, budget->figures()));
  budget->on_step([&](const BudgetFigures& figures) {
    parent.tracker.report(
        budget_report(budget_reports::subagent_step_progress, figures, tracker.session()));
  });
  auto answer = answer_of(
      runner, task,
      {.tracker = tracker, .budget = budget, .stop = parent.stop, .reporting = parent.reporting});
  budget->on_step(nullptr);
  auto result = finished(tracker.session(), std::move(answer), *budget);
  end(tracker, result.outcome);
  return result;
}

std::string to_json(const TaskResult& result) {
  JsonWriter out;
  out.open_object().field("outcome", name_of(result.outcome.kind));
  out.field("reason", result.outcome.reason);
  if (!result.outcome.error.empty()) out.field("error", result.outcome.error);
  out.field("partial", result.ended_by.has_value());
  if (result.ended_by) out.field("ended_by", name_of(*result.ended_by));
  if (!result.session.empty()) out.field("session_id", result.session);
  out.field("text", result.text).key("budget").open_object();
  write_figures(out, result.figures);
  out.close_object().close_object();
  return out.finish();
}

}  // namespace watchdog
