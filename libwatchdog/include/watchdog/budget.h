/// \file
/// What a task may use up, and how its agent is told while there is still something left.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Rises only, but by `extend`.
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

/// What is allowed; an empty one is not limited. A plain value.
struct BudgetLimits {
  std::optional<std::int64_t> steps{};  ///< Model responses with their tool calls.
  std::optional<std::int64_t> tool_calls{};
  std::optional<std::int64_t> tokens{};
  std::optional<double> cost{};  ///< In whatever currency the owner counts.
  std::optional<Millis> duration{};
};

/// Shares of the budget at which a stage begins, and whether time counts. A plain value.
struct BudgetThresholds {
  double low = 0.70;       ///< The model is advised to wrap up.
  double warn = 0.80;      ///< Parent and page are told.
  double finalize = 0.90;  ///< One turn for the final answer is left.
  /// False: time is shown and raises the stage to `warn` at most; it ends nothing.
  bool enforce_time = false;
};

/// A budget's figures at one moment. Absent limits are empty. A plain value.
struct BudgetFigures {
  BudgetLimits limits;
  std::int64_t steps = 0;  ///< Used up.
  std::int64_t tool_calls = 0;
  std::int64_t tokens = 0;
  double cost = 0;
  Millis elapsed{};
  bool enforce_time = false;
  double pressure = 0;  ///< The largest share used of any axis, 0 …; above 1: overdrawn.
  BudgetAxis axis = BudgetAxis::steps;  ///< That axis.
  BudgetStage stage = BudgetStage::nominal;
};

/// Counts what a task uses. A child's spending is its ancestors' too, and its own limits never
/// exceed what an ancestor has left. Thread-safe.
class ExecutionBudget {
 public:
  /// Starts now. REQUIRES: the clock outlives it.
  ExecutionBudget(const Clock& clock, BudgetLimits limits, BudgetThresholds thresholds = {});
  /// Of a task that a task starts. Inherits thresholds; nested at most `budget_depth_max` deep
  /// (Errors: `exhausted`).
  [[nodiscard]] static Result<std::shared_ptr<ExecutionBudget>> child(
      const std::shared_ptr<ExecutionBudget>& parent, BudgetLimits limits);
  ~ExecutionBudget();
  ExecutionBudget(const ExecutionBudget&) = delete;
  ExecutionBudget& operator=(const ExecutionBudget&) = delete;

  /// Each charges all ancestors as well and returns the stage after it.
  BudgetStage step();
  BudgetStage charge_tokens(std::int64_t count);
  BudgetStage charge_cost(double amount);
  BudgetStage charge_tool_call();

  /// Time spent waiting for somebody else (a person, a quota, a stalled machine) does not count.
  /// Pairs nest.
  void pause();
  void resume();

  /// Allows more, on every axis that `extra` names. The only way to lower a stage. Errors:
  /// `invalid` (nothing more, or an axis without a limit).
  [[nodiscard]] Result<void> extend(const BudgetLimits& extra);

  [[nodiscard]] std::int64_t elapsed_seconds() const;
  /// Until the duration; never below 0; empty without one.
  [[nodiscard]] std::optional<std::int64_t> remaining_seconds() const;
  [[nodiscard]] double time_percentage_used() const;
  [[nodiscard]] double steps_percentage_used() const;
  [[nodiscard]] BudgetStage stage() const;
  [[nodiscard]] bool should_wrap_up() const { return stage() >= BudgetStage::low; }
  /// True if the next turn must be the final answer: the last step always, whatever its number.
  [[nodiscard]] bool must_finalize() const { return stage() >= BudgetStage::finalize; }
  /// The enforced axis that is used up, if one is.
  [[nodiscard]] std::optional<BudgetAxis> exhausted() const;
  /// How long a call may take: `cap`, unless time is enforced; then what is left, at least `floor`.
  /// Empty: nothing is left, start none.
  [[nodiscard]] std::optional<Millis> per_tool_remaining(Millis cap,
                                                         Millis floor = Millis{5'000}) const;
  [[nodiscard]] BudgetFigures figures() const;

  /// The text for the model, to be appended to the last message of a request and not kept in the
  /// conversation.
  [[nodiscard]] std::string prompt_block() const;

 private:
  struct State;
  explicit ExecutionBudget(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

inline constexpr int budget_depth_max = 5;

}  // namespace watchdog
