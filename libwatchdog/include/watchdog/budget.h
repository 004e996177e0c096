/// \file
/// Limits of a task, and the hints that its agent gets before they are reached.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The used part of a budget. The stage only rises, except after `extend`. At `low` the model is
/// advised to finish. At `warn` the parent and the page are notified. At `finalize` the next step
/// must be the final answer. At `exhausted` no step follows, and the task ends as incomplete with
/// its results so far.
enum class BudgetStage : std::uint8_t { nominal, low, warn, finalize, exhausted };

template <>
struct Names<BudgetStage> {
  static constexpr std::string_view all[] = {"nominal", "low", "warn", "finalize", "exhausted"};
};

/// A quantity that a budget limits.
enum class BudgetAxis : std::uint8_t { steps, tool_calls, tokens, cost, time };

template <>
struct Names<BudgetAxis> {
  static constexpr std::string_view all[] = {"steps", "tool_calls", "tokens", "cost", "time"};
};
/// All axes, in the order of the enumerators.
inline constexpr std::array budget_axes{BudgetAxis::steps, BudgetAxis::tool_calls,
                                        BudgetAxis::tokens, BudgetAxis::cost, BudgetAxis::time};

/// Above what is counted: figures stay exact in JSON.
inline constexpr std::int64_t budget_max = std::int64_t{1} << 53U;

/// Limits; an empty one is unlimited, and 0 allows nothing. A plain value.
struct BudgetLimits {
  std::optional<std::int64_t> steps{};       ///< Model responses with their tool calls.
  std::optional<std::int64_t> tool_calls{};  ///< 0: the task must not use tools.
  std::optional<std::int64_t> tokens{};      ///< Of prompts and answers; empty: not limited.
  std::optional<double> cost{};              ///< In the owner's currency.
  std::optional<Millis> duration{};          ///< Of the whole run; empty: not limited.
};

/// Shares of a limit at which a stage begins, and whether time counts. A plain value.
struct BudgetThresholds {
  double low = 0.70;   ///< Share from which the budget counts as low.
  double warn = 0.80;  ///< Share from which a warning is reported.
  /// At this share the next step is the final one. At least one step is kept back, so the last step
  /// is always for the final answer.
  double finalize = 0.90;
  /// False: time is shown and raises the stage to `warn` at most; it ends nothing.
  bool enforce_time = false;
};

/// A budget's figures at one moment. A plain value.
struct BudgetFigures {
  BudgetLimits limits{};        ///< The limits that are in force.
  std::int64_t steps = 0;       ///< Used, like the next three.
  std::int64_t tool_calls = 0;  ///< Calls of tools so far.
  std::int64_t tokens = 0;      ///< Tokens so far.
  double cost = 0;              ///< Cost so far.
  Millis elapsed{};             ///< Without pauses.
  bool enforce_time = false;    ///< True: the limit of time ends the run.
  double pressure = 0;          ///< The largest used share of all axes, 0 …; above 1: overdrawn.
  BudgetAxis axis = BudgetAxis::steps;       ///< That axis.
  BudgetStage stage = BudgetStage::nominal;  ///< The most severe stage of all axes.
};

/// Returns the used share of an axis, 0 … 10⁹; 1 if its limit is 0; empty without a limit.
[[nodiscard]] std::optional<double> share_used(const BudgetFigures& figures, BudgetAxis axis);
/// Sets `pressure` and `axis` from the other members. Without any limit both are unchanged.
void weigh(BudgetFigures& figures);
/// Returns the stage that follows from the figures alone.
[[nodiscard]] BudgetStage stage_of(const BudgetFigures& figures,
                                   const BudgetThresholds& thresholds = {});
/// Returns the figures within 0 and `budget_max`, with `pressure` and `axis`.
[[nodiscard]] BudgetFigures bounded(BudgetFigures figures);
/// Returns the steps left, never below 0; empty without a limit.
[[nodiscard]] std::optional<std::int64_t> steps_left(const BudgetFigures& figures);
/// Returns the elapsed time in seconds.
[[nodiscard]] std::int64_t elapsed_seconds(const BudgetFigures& figures);
/// Returns the seconds left, rounded up, so 0 means none; with `elapsed_seconds` they add up to the
/// whole duration.
[[nodiscard]] std::optional<std::int64_t> remaining_seconds(const BudgetFigures& figures);

/// Returns the text for the model:
///
///     [EXECUTION BUDGET]
///     Current Progress: Step 15/30, Elapsed: 45/300 seconds
///     Time Used: 15%, Steps Used: 50%
///     Remaining: 255 seconds, 15 steps
///     Status: NOMINAL (Continue normally)
///
/// Tokens, cost and tool calls follow in the same form if they are limited. Time appears only if it
/// is enforced, and the advice from `low` on. Empty without a limit.
[[nodiscard]] std::string prompt_block(const BudgetFigures& figures);

/// When the model gets the text.
enum class BudgetVisibility : std::uint8_t {
  thresholds,  ///< at a change of stage (the first step is one), and at each step from `low` on
  always,
  silent  ///< called "never"; `never` is an instant
};

template <>
struct Names<BudgetVisibility> {
  static constexpr std::string_view all[] = {"thresholds", "always", "never"};
};

/// Returns true if the model gets the text before its next step. `before`: the stage at the
/// previous step; empty at the first. Enforcement does not depend on it.
[[nodiscard]] constexpr bool is_shown(BudgetVisibility visibility,
                                      std::optional<BudgetStage> before, BudgetStage now) noexcept {
  if (visibility != BudgetVisibility::thresholds) return visibility == BudgetVisibility::always;
  return before != now || now >= BudgetStage::low;
}
/// Its name before 0.2; goes with 0.3.
[[nodiscard]] constexpr bool is_told(BudgetVisibility visibility, std::optional<BudgetStage> before,
                                     BudgetStage now) noexcept {
  return is_shown(visibility, before, now);
}

/// Names of reports of kind `budget`. One with a `call_id` is about the child session of that id;
/// one without, about the session itself.
namespace budget_reports {
inline constexpr std::string_view update = "update";  ///< after each step
inline constexpr std::string_view low_budget_warning =
    "low_budget_warning";  ///< A budget reached its warning stage.
inline constexpr std::string_view timeout_warning =
    "timeout_warning";                                    ///< The enforced time is nearly used.
inline constexpr std::string_view extended = "extended";  ///< A budget was extended.
inline constexpr std::string_view paused = "paused";      ///< The clock of a budget was paused.
inline constexpr std::string_view resumed = "resumed";    ///< The clock of a budget goes on.
inline constexpr std::string_view subagent_step_progress =
    "subagent_step_progress";  ///< A child's use, reported by its parent.
}  // namespace budget_reports

inline constexpr int budget_depth_max = 5;  ///< Budgets below each other, at most.

/// The figures of a budget. Code that must not charge takes this instead of the budget.
/// Thread-safe.
class BudgetView {
 public:
  BudgetView(const BudgetView&) = delete;
  BudgetView& operator=(const BudgetView&) = delete;

  /// Returns the elapsed time without pauses.
  [[nodiscard]] std::int64_t elapsed_seconds() const;
  /// Returns the seconds until the duration; never below 0; empty without one.
  [[nodiscard]] std::optional<std::int64_t> remaining_seconds() const;
  /// Returns 0 … 100, above: overdrawn; 0 without a limit.
  [[nodiscard]] double time_percentage_used() const;
  /// Returns the used share of the steps, in percent.
  [[nodiscard]] double steps_percentage_used() const;
  /// Returns the most severe stage of all axes.
  [[nodiscard]] BudgetStage stage() const;
  /// Returns true if the agent should finish now.
  [[nodiscard]] bool should_wrap_up() const { return stage() >= BudgetStage::low; }
  /// Returns true if the next step must be the final answer, without tools: always for the last
  /// step, and when no tool call is left.
  [[nodiscard]] bool must_finalize() const { return stage() >= BudgetStage::finalize; }
  /// Returns the axis because of which the next step must be the final answer; empty before.
  [[nodiscard]] std::optional<BudgetAxis> finalizing() const {
    return axis_from(BudgetStage::finalize);
  }
  /// Returns the enforced axis that is used up, if any. Tool calls are used up only by one call too
  /// many: an answer needs none.
  [[nodiscard]] std::optional<BudgetAxis> exhausted() const {
    return axis_from(BudgetStage::exhausted);
  }
  /// Returns the time limit for a tool call that starts now: `cap`, or if time is enforced the
  /// rest until the final step is due, so that an answer can follow. At least `floor`, if half of
  /// the time has room for it, and at most `cap`. A `cap` of 0: the call has no limit of its own.
  /// Empty: a limit is used up; start no call.
  [[nodiscard]] std::optional<Millis> per_tool_remaining(Millis cap,
                                                         Millis floor = Millis{5'000}) const;
  /// Returns the time of per_tool_remaining, whatever else is used up.
  [[nodiscard]] Millis time_for_call(Millis cap, Millis floor = Millis{5'000}) const;
  /// Returns all figures at once.
  [[nodiscard]] BudgetFigures figures() const;
  /// Returns the number of extensions of this budget itself.
  [[nodiscard]] std::int64_t extensions() const;
  /// Returns the shares from which stages begin.
  [[nodiscard]] const BudgetThresholds& thresholds() const noexcept;
  /// Returns the number of budgets above it: 0 … `budget_depth_max`.
  [[nodiscard]] int depth() const noexcept;

  /// Returns the text for the model. Append it to the last message of a request, and do not keep it
  /// in the conversation.
  [[nodiscard]] std::string prompt_block() const { return watchdog::prompt_block(figures()); }

 protected:
  struct State;
  /// For the class that derives from it.
  explicit BudgetView(std::shared_ptr<State> state);
  ~BudgetView();
  std::shared_ptr<State> state_;  ///< Never null.

 private:
  /// Returns the axis that led to this stage or a later one, if it was reached.
  [[nodiscard]] std::optional<BudgetAxis> axis_from(BudgetStage stage) const;
};

/// Counts what a task uses. Thread-safe.
///
/// A child's use counts for its ancestors too. Each of its limits is the smaller of its own and
/// what is left above at that moment, so a sibling's use counts. Every ancestor keeps one step back
/// for its own final answer. A child must finalize, and is exhausted, as soon as an ancestor is.
/// `low` and `warn` do not pass down.
///
/// Time is enforced for a child if it is for its parent, or if the child's own thresholds enforce
/// it. A parent's duration bounds the child's only if both are enforced or neither is.
class ExecutionBudget : public BudgetView {
 public:
  /// Starts now. REQUIRES: the clock outlives it. A limit below 0, or NaN, counts as 0; one above
  /// `budget_max` as that.
  explicit ExecutionBudget(const Clock& clock, const BudgetLimits& limits = {},
                           const BudgetThresholds& thresholds = {});
  /// Creates the budget of a child task, with its parent's thresholds unless others are given. At
  /// most `budget_depth_max` levels. Errors: `exhausted` (deeper). REQUIRES: `parent` is not null.
  [[nodiscard]] static Result<std::shared_ptr<ExecutionBudget>> child(
      const std::shared_ptr<ExecutionBudget>& parent, const BudgetLimits& limits,
      const std::optional<BudgetThresholds>& thresholds = {});

  /// Charges the budget and all ancestors, and returns the stage. Charges of 0 or less are ignored.
  BudgetStage step();
  /// Charges tokens, here and in the budgets above.
  BudgetStage charge_tokens(std::int64_t count);
  /// Charges a cost, here and in the budgets above.
  BudgetStage charge_cost(double amount);
  /// Charges one call, here and in the budgets above.
  BudgetStage charge_tool_call();
  /// Charges as many of these calls as are left, and returns their number.
  std::int64_t charge_tool_calls(std::int64_t asked);

  /// Excludes the time of a wait (for a person, a quota, a stalled machine) here and in all
  /// ancestors. Pairs nest; extra `resume` calls are ignored.
  void pause();
  /// Ends a pause.
  void resume();

  /// Raises the limit of every axis in `extra`. The only way to lower a stage. Errors: `invalid`
  /// (nothing to add, or an axis without its own limit); then nothing changes.
  [[nodiscard]] Result<void> extend(const BudgetLimits& extra);
  /// Called after each `step` taken here (not by children), on its thread, outside of any lock.
  /// Null removes the listener.
  void on_step(std::function<void(const BudgetFigures&)> listener);

 private:
  explicit ExecutionBudget(std::shared_ptr<State> state);
};

}  // namespace watchdog
