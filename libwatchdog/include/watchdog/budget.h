/// \file
/// What a task may use up, and how its agent is told while there is still something left.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// How far a budget is used up; the ladder is climbed only, but for `extend`. `low`: advice to wrap
/// up. `warn`: parent and page are told. `finalize`: the next step must be the final answer.
/// `exhausted`: there is no next step; the task ends as incomplete, with what it has.
enum class BudgetStage : std::uint8_t { nominal, low, warn, finalize, exhausted };

template <>
struct Names<BudgetStage> {
  static constexpr std::string_view all[] = {"nominal", "low", "warn", "finalize", "exhausted"};
};

enum class BudgetAxis : std::uint8_t { steps, tool_calls, tokens, cost, time };

template <>
struct Names<BudgetAxis> {
  static constexpr std::string_view all[] = {"steps", "tool_calls", "tokens", "cost", "time"};
};
inline constexpr std::array budget_axes{BudgetAxis::steps, BudgetAxis::tool_calls,
                                        BudgetAxis::tokens, BudgetAxis::cost, BudgetAxis::time};

/// Above what is counted: figures stay exact in JSON.
inline constexpr std::int64_t budget_max = std::int64_t{1} << 53U;

/// What is allowed; an empty one is not limited, and 0 allows nothing. A plain value.
struct BudgetLimits {
  std::optional<std::int64_t> steps{};       ///< Model responses with their tool calls.
  std::optional<std::int64_t> tool_calls{};  ///< 0: the task is to be done without.
  std::optional<std::int64_t> tokens{};
  std::optional<double> cost{};  ///< In whatever currency the owner counts.
  std::optional<Millis> duration{};
};

/// Shares of a limit at which a stage begins, and whether time counts. A plain value.
struct BudgetThresholds {
  double low = 0.70;
  double warn = 0.80;
  /// Of steps, so many are kept back: at least one, so that the last step always is the one for the
  /// final answer.
  double finalize = 0.90;
  /// False: time is shown and raises the stage to `warn` at most; it ends nothing.
  bool enforce_time = false;
};

/// A budget's figures at one moment. A plain value.
struct BudgetFigures {
  BudgetLimits limits;
  std::int64_t steps = 0;  ///< Used up, as of the next three.
  std::int64_t tool_calls = 0;
  std::int64_t tokens = 0;
  double cost = 0;
  Millis elapsed{};  ///< Without pauses.
  bool enforce_time = false;
  double pressure = 0;  ///< The largest share used of any axis, 0 …; above 1: overdrawn.
  BudgetAxis axis = BudgetAxis::steps;  ///< That axis.
  BudgetStage stage = BudgetStage::nominal;
};

/// The share of an axis that is used, 0 … 10⁹; 1 where nothing is allowed; empty where nothing
/// limits it.
[[nodiscard]] std::optional<double> share_used(const BudgetFigures& figures, BudgetAxis axis);
/// Sets `pressure` and `axis` from the rest. Without any limit both stay as they are.
void weigh(BudgetFigures& figures);
/// Where the figures by themselves are on the ladder.
[[nodiscard]] BudgetStage stage_of(const BudgetFigures& figures,
                                   const BudgetThresholds& thresholds = {});
/// The same within 0 and `budget_max`, and weighed.
[[nodiscard]] BudgetFigures bounded(BudgetFigures figures);
/// Never below 0; empty where nothing limits them.
[[nodiscard]] std::optional<std::int64_t> steps_left(const BudgetFigures& figures);
[[nodiscard]] std::int64_t elapsed_seconds(const BudgetFigures& figures);
/// Rounded up, so that 0 means none; with `elapsed_seconds` it makes up a duration of whole
/// seconds.
[[nodiscard]] std::optional<std::int64_t> remaining_seconds(const BudgetFigures& figures);

/// The text for the model:
///
///     [EXECUTION BUDGET]
///     Current Progress: Step 15/30, Elapsed: 45/300 seconds
///     Time Used: 15%, Steps Used: 50%
///     Remaining: 255 seconds, 15 steps
///     Status: NOMINAL (Continue normally)
///
/// Tokens, cost and tool calls follow in the same manner where they are limited. Time appears only
/// where it is enforced, nothing urgent before `low`, and then a line of advice. Empty where there
/// is nothing to say.
[[nodiscard]] std::string prompt_block(const BudgetFigures& figures);

/// How much of its budget the model is told.
enum class BudgetVisibility : std::uint8_t {
  thresholds,  ///< at a change of stage (the first step is one), and at each step from `low` on
  always,
  silent  ///< called "never"; `never` is an instant
};

template <>
struct Names<BudgetVisibility> {
  static constexpr std::string_view all[] = {"thresholds", "always", "never"};
};

/// True if the model is to be told before its next step. `before`: the stage at the step before;
/// empty at the first. What is enforced does not depend on it.
[[nodiscard]] constexpr bool is_told(BudgetVisibility visibility, std::optional<BudgetStage> before,
                                     BudgetStage now) noexcept {
  if (visibility != BudgetVisibility::thresholds) return visibility == BudgetVisibility::always;
  return before != now || now >= BudgetStage::low;
}

/// Names of reports of kind `budget`. One with a `call_id` is about the child session of that id;
/// one without, about the session itself.
namespace budget_reports {
inline constexpr std::string_view update = "update";  ///< after each step
inline constexpr std::string_view low_budget_warning = "low_budget_warning";
inline constexpr std::string_view timeout_warning = "timeout_warning";
inline constexpr std::string_view extended = "extended";
inline constexpr std::string_view paused = "paused";
inline constexpr std::string_view resumed = "resumed";
inline constexpr std::string_view subagent_step_progress = "subagent_step_progress";
}  // namespace budget_reports

inline constexpr int budget_depth_max = 5;

/// Counts what a task uses. Thread-safe.
///
/// A child's spending is its ancestors' too, and each of its limits is the smaller of its own and
/// what is left above it at that moment, so a sibling's spending counts. Of steps every ancestor
/// keeps one back for its own final answer. A child has to finalize, and is exhausted, as soon as
/// an ancestor is; to be low is its own affair: a child with little to do need not hurry.
///
/// Time is enforced for a child where it is for its parent or where the child's own thresholds say
/// so; a parent's duration bounds the child's only where both are enforced or both are advice.
class ExecutionBudget {
 public:
  /// Starts now. REQUIRES: the clock outlives it. A limit below 0, or that is no number, counts as
  /// 0; one above `budget_max` as that.
  explicit ExecutionBudget(const Clock& clock, const BudgetLimits& limits = {},
                           const BudgetThresholds& thresholds = {});
  /// Of a task that a task starts; with its parent's thresholds, unless others are given. Nested at
  /// most `budget_depth_max` deep. Errors: `exhausted` (deeper). REQUIRES: `parent` is not null.
  [[nodiscard]] static Result<std::shared_ptr<ExecutionBudget>> child(
      const std::shared_ptr<ExecutionBudget>& parent, const BudgetLimits& limits,
      const std::optional<BudgetThresholds>& thresholds = {});
  ~ExecutionBudget();
  ExecutionBudget(const ExecutionBudget&) = delete;
  ExecutionBudget& operator=(const ExecutionBudget&) = delete;

  /// Each charges all ancestors as well and returns the stage after it. Charges that are not above
  /// 0 are ignored.
  BudgetStage step();
  BudgetStage charge_tokens(std::int64_t count);
  BudgetStage charge_cost(double amount);
  BudgetStage charge_tool_call();

  /// Time spent waiting for somebody else (a person, a quota, a stalled machine) does not count,
  /// neither here nor for the ancestors, who wait for this. Pairs nest; a `resume` too many is
  /// ignored.
  void pause();
  void resume();

  /// Allows more, on every axis that `extra` names. The only way to lower a stage. Errors:
  /// `invalid` (nothing more, or an axis without a limit of its own); then nothing changes.
  [[nodiscard]] Result<void> extend(const BudgetLimits& extra);

  /// Called after each `step` taken here (not by children), on its thread, outside of any lock.
  /// Null: nobody is called any more.
  void on_step(std::function<void(const BudgetFigures&)> listener);

  [[nodiscard]] std::int64_t elapsed_seconds() const;
  /// Until the duration; never below 0; empty without one.
  [[nodiscard]] std::optional<std::int64_t> remaining_seconds() const;
  /// 0 … 100, above: overdrawn; 0 without a limit.
  [[nodiscard]] double time_percentage_used() const;
  [[nodiscard]] double steps_percentage_used() const;
  [[nodiscard]] BudgetStage stage() const;
  [[nodiscard]] bool should_wrap_up() const { return stage() >= BudgetStage::low; }
  /// True if the next step must be the final answer, without further tools: the last step always,
  /// whatever its number, and as soon as no tool call is left.
  [[nodiscard]] bool must_finalize() const { return stage() >= BudgetStage::finalize; }
  /// The axis because of which the next step must be the final answer; empty before.
  [[nodiscard]] std::optional<BudgetAxis> finalizing() const {
    return axis_from(BudgetStage::finalize);
  }
  /// The enforced axis that is used up, if one is. Tool calls are used up only when there was one
  /// too many: the answer needs none.
  [[nodiscard]] std::optional<BudgetAxis> exhausted() const {
    return axis_from(BudgetStage::exhausted);
  }
  /// How long a tool call may take that is to start now: `cap`, or where time is enforced what is
  /// left, at least `floor` and never above `cap`. A `cap` of 0: the call has no limit of its own.
  /// Empty: time, steps, tokens, cost or tool calls are used up; start none.
  [[nodiscard]] std::optional<Millis> per_tool_remaining(Millis cap,
                                                         Millis floor = Millis{5'000}) const;
  [[nodiscard]] BudgetFigures figures() const;
  [[nodiscard]] const BudgetThresholds& thresholds() const noexcept;
  /// How many budgets are above it: 0 … `budget_depth_max`.
  [[nodiscard]] int depth() const noexcept;

  /// The text for the model, to be appended to the last message of a request and not kept in the
  /// conversation.
  [[nodiscard]] std::string prompt_block() const { return watchdog::prompt_block(figures()); }

 private:
  struct State;
  explicit ExecutionBudget(std::shared_ptr<State> state);
  /// The axis that led to this stage or a later one, if it came so far.
  [[nodiscard]] std::optional<BudgetAxis> axis_from(BudgetStage stage) const;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
