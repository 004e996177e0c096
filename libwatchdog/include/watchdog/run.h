/// \file
/// An agent's main loop: reflect, act, look at its own progress, until there is a reason to end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "watchdog/budget.h"
#include "watchdog/checks.h"
#include "watchdog/failure.h"
#include "watchdog/model.h"
#include "watchdog/old_limits.h"
#include "watchdog/plan.h"
#include "watchdog/result.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// What the agent concludes of its own work.
enum class Assessment : std::uint8_t { going_on, task_complete, task_failed };

template <>
struct Names<Assessment> {
  static constexpr std::string_view all[] = {"going_on", "task_complete", "task_failed"};
};

/// What a reflection came to. A plain value.
struct Reflection {
  Assessment assessment = Assessment::going_on;
  std::optional<double> confidence{};  ///< 0 … 1, where the agent gives one.
  std::string data{};                  ///< What it is about to do: JSON or any text.
  std::string reason{};                ///< Of `task_failed`: why.
};

/// What an act came to. A plain value.
struct Act {
  std::string tool{};  ///< What was done, as a name; empty: nothing.
  std::string data{};  ///< JSON or any text.
  /// The act was reported to the tracker as calls and results; else its end counts as a state
  /// change of type `tool_call`.
  bool reported = false;
};

/// Why the recovery hook is called. A plain value.
struct Trouble {
  Health health;
  std::string reason;          ///< In a sentence: what repeats, how often.
  std::optional<Check> check;  ///< The opinion that confirmed it, if one did.
  std::string advice;          ///< For the agent's model: what to change.
};

/// When a run is stuck and something other than a clock confirms it.
enum class OnConfirmedStuck : std::uint8_t {
  report,  ///< it goes on: it is shown, checked, and the recovery hook is called
  fail     ///< it ends as `failed / confirmed_stuck`
};

template <>
struct Names<OnConfirmedStuck> {
  static constexpr std::string_view all[] = {"report", "fail"};
};

/// How a run is run. A plain value.
struct RunOptions {
  /// The failsafe: 1 …; empty: the steps of the budget where they are limited, else 25.
  std::optional<std::int64_t> iterations_max{};
  int status_every = 5;         ///< Iterations between two looks at its own status. 1 …
  Millis check_wait{5'000};     ///< How long a look waits for an opinion; 0: takes it next time.
  double confidence_min = 0.3;  ///< A reflection below this, so many times in a row, ends it.
  int confidence_times = 3;
  OnConfirmedStuck on_confirmed_stuck = OnConfirmedStuck::report;
  BudgetVisibility budget_visibility = BudgetVisibility::thresholds;
  int tries = 5;              ///< Of one request to the model, after the first.
  Millis retry_first{1'000};  ///< Before the first of them; doubles with each.
  Millis retry_longest{60'000};
  OldLimits old_limits{};
};

/// How a run ended, and what it has to show. A plain value.
struct RunEnd {
  Outcome outcome;
  Reflection last;  ///< Its newest reflection: of an incomplete run, what there is of an answer.
  int iterations = 0;
  BudgetFigures budget;  ///< Final; without a budget, those of the failsafe.
  bool stored = true;    ///< False: the store refuses; the end waits in the tracker.
};

class Run;

/// One pass as the callbacks see it.
class Iteration {
 public:
  [[nodiscard]] int number() const noexcept { return number_; }
  /// True if nothing comes after it: answer now, with what there is. May become true in its middle.
  [[nodiscard]] bool final() const noexcept { return final_; }
  /// What the model is to be told of its budget now; empty: nothing. `ask` adds it by itself.
  [[nodiscard]] const std::string& budget() const noexcept { return budget_; }
  [[nodiscard]] ProgressTracker& tracker() noexcept;
  /// Asked for when the run is cancelled, or ends for another reason.
  [[nodiscard]] std::stop_token stop() const;
  /// What follows is of this phase: planning, implementation, deployment, … `reflection` and
  /// `execution` are begun by the run.
  void phase(std::string_view name);

  /// Asks the run's model, as long as it takes: what comes is reported as sub-activity, recoverable
  /// failures are tried again, the step, its tokens and the tool calls asked for are charged, and
  /// what the model should know now (its budget, that it repeats itself) is told after the last
  /// message. A final step offers no tools. `answer.tool_calls` are the caller's to carry out.
  /// Nothing is asked when the budget is used up: that failure ends the run as incomplete.
  [[nodiscard]] Result<ChatAnswer, Failure> ask(ChatRequest request);
  /// Has the run's model make a plan; see watchdog::plan. Charged like `ask`.
  [[nodiscard]] Result<Plan, Failure> plan(std::string_view task, std::string_view context = {});

 private:
  friend class Run;
  Iteration(Run& run, int number);
  void look_at_budget();

  Run& run_;
  int number_;
  bool final_ = false;
  bool asked_ = false;
  std::string budget_;
};

/// What an agent's author gives. A failure that a callback returns ends the run with its reason; an
/// exception ends it as `failed / error`. What goes wrong in a tool is no failure: tell the model.
struct RunCallbacks {
  std::function<Result<Reflection, Failure>(Iteration&)> reflect;
  /// Does what the reflection came to. Not called when it was the last word: the task is complete,
  /// has failed, or the step is final.
  std::function<Result<Act, Failure>(Iteration&, const Reflection&)> act;
  /// Confirmed trouble, once a streak: change something. May be empty.
  std::function<void(const Trouble&)> recover{};
};

/// Runs a session to its end. Use from one thread at a time, but `cancel`.
class Run {
 public:
  struct Parts {
    ProgressTracker& tracker;
    RunCallbacks callbacks;
    Model model{};  ///< For `Iteration::ask`. May be empty.
    /// Empty: only the failsafe bounds it. Steps, tokens and tool calls are charged by the run;
    /// cost is charged by who knows prices.
    std::shared_ptr<ExecutionBudget> budget{};
    StatusChecker* checker = nullptr;  ///< Null: nobody is asked.
    const Clock* clock = &system_clock();
  };
  Run(Parts parts, RunOptions options = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Until the run ends, which is reported and stored before it returns. `stop` is a parent's
  /// cancel. The outcome's reason is one of reasons.h; the time that passed is among them only
  /// where `legacy_time_limit` or `budget_time` was chosen. Once.
  RunEnd go(const std::stop_token& stop = {});

  /// Thread-safe; the run ends as cancelled.
  void cancel(std::string_view by);

 private:
  friend class Iteration;
  struct State;
  std::unique_ptr<State> state_;
};

/// A checker whose checks are events of the tracker's session. Both must outlive it. Where the
/// model is the agent's own server, give ModelClient::model_beside(): a check must not make the
/// agent read its prompt again.
[[nodiscard]] std::unique_ptr<StatusChecker> checker_for(ProgressTracker& tracker, Model model,
                                                         StatusChecker::Options options = {});

/// What somebody wants to know of requests that are tried again.
struct Retries {
  std::function<void(int)> failed{};    ///< The number of the try that failed.
  std::function<void(bool)> waiting{};  ///< A pause begins (true), and ends.
};

/// The model with the session watching: each piece that comes is sub-activity of it (counters and
/// the search for chants), recoverable failures are asked again with a growing pause, during which
/// the session waits for `backend`. The tracker must outlive it.
[[nodiscard]] Model tracked(Model model, ProgressTracker& tracker, const RunOptions& options,
                            Retries retries = {});

}  // namespace watchdog
