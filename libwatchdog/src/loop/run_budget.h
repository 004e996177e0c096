/// \file
/// The limits of a run: its owner's budget, if there is one, and the failsafe of iterations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "watchdog/budget.h"
#include "watchdog/session.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// Charges, warns, and knows when the next answer must be the final one. Used by the run's thread;
/// `hold`, `warn`, `used_up`, `end_for`, `time_left` and `enforces_time` also by others.
class RunBudget {
 public:
  /// `owners`: null: only the failsafe bounds the run, with `iterations` (at least 1).
  /// REQUIRES: `tracker` and `clock` outlive it.
  RunBudget(ProgressTracker& tracker, std::shared_ptr<ExecutionBudget> owners,
            std::optional<int> iterations, const Clock& clock);

  /// What ends the run is near: no tools in the next request.
  [[nodiscard]] bool is_final() const { return is_last_iteration() || finalizing().has_value(); }
  [[nodiscard]] bool is_last_iteration() const { return steps_left(failsafe_.figures()) <= 1; }
  /// The axis of the owner's budget because of which the answer must be final.
  [[nodiscard]] std::optional<BudgetAxis> finalizing() const;
  /// The axis of the owner's budget that is used up.
  [[nodiscard]] std::optional<BudgetAxis> used_up() const;
  /// The end of a run whose owner's budget is used up. REQUIRES: there is one.
  [[nodiscard]] Outcome end_for(BudgetAxis axis) const;

  /// The text for the model's next request; empty: none is due. About the failsafe only when that
  /// is near.
  [[nodiscard]] std::string next_text(BudgetVisibility visibility);
  /// The owner's figures if a limit is set, else the failsafe's.
  [[nodiscard]] BudgetFigures figures() const;

  void charge_step();
  /// An answer's tokens, and its calls as far as they are left. Returns how many are charged.
  std::int64_t charge(std::int64_t tokens, std::size_t calls);
  /// The owner limits calls of tools.
  [[nodiscard]] bool limits_calls() const;
  void end_iteration() { failsafe_.step(); }

  /// Stops the budget's clock, or lets it go on: waiting for the model server does not count.
  void hold(bool begins);
  /// Reports warnings that are due.
  void warn();
  [[nodiscard]] bool enforces_time() const;
  /// Of an enforced duration; nothing: time does not end the run.
  [[nodiscard]] std::optional<Millis> time_left() const;

 private:
  std::shared_ptr<ExecutionBudget> owners_;
  bool is_limited_ = false;   ///< The owner set a limit.
  ExecutionBudget failsafe_;  ///< Its steps are iterations.
  std::optional<BudgetReporter> reporter_;
  std::optional<BudgetStage> stage_;  ///< When the model was last asked.
};

}  // namespace watchdog
