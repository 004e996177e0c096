/// \file
/// Tells whoever watches a session what it has used up of its budget.
#pragma once

#include <atomic>
#include <string_view>

#include "watchdog/budget.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// Reports a budget's figures as events of kind `budget`, named as in `budget_reports`. They count
/// as signs of life and change no health. Thread-safe.
///
/// Each session tells its own figures, a child's spending among them; so the progress documents of
/// a parent and of its children, which a list of sessions gives anyway, are all there is to read.
class BudgetReporter {
 public:
  /// REQUIRES: both outlive it.
  BudgetReporter(ProgressTracker& tracker, const ExecutionBudget& budget)
      : tracker_(tracker), budget_(budget) {}

  /// After each step: `update`, then what `warn` has to say.
  void update();
  /// For whoever looks at it between two steps, as often as they like. Once: `low_budget_warning`,
  /// from the stage `warn` on. Once, where time is enforced: `timeout_warning`, when a fifth of it
  /// is left, or the share at which `warn` begins is used if that is earlier.
  void warn();
  /// After an `extend`; both warnings are said again when it comes to that.
  void extended();
  void paused() { tell(budget_reports::paused); }
  void resumed() { tell(budget_reports::resumed); }

 private:
  void tell(std::string_view name);

  ProgressTracker& tracker_;
  const ExecutionBudget& budget_;
  std::atomic<bool> low_said_ = false;
  std::atomic<bool> timeout_said_ = false;
};

/// A report of kind `budget`. `child`: the session whose figures they are; empty: its own.
[[nodiscard]] Report budget_report(std::string_view name, const BudgetFigures& figures,
                                   std::string_view child = {});

}  // namespace watchdog
