/// \file
/// Reports to a session how much of its budget is used.
#pragma once

#include <atomic>
#include <string_view>

#include "watchdog/budget.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// Reports a budget's figures as events of kind `budget`, with names from `budget_reports`. They
/// count as signs of life and change no health. Thread-safe.
///
/// Each session reports its own figures, including its children's use. So the progress documents in
/// a list of sessions are enough to show a parent and its children.
class BudgetReporter {
 public:
  /// REQUIRES: both outlive it.
  BudgetReporter(ProgressTracker& tracker, const ExecutionBudget& budget)
      : tracker_(tracker), budget_(budget), extensions_said_(budget.extensions()) {}

  /// Call it after each step: reports `update`, then calls `warn`.
  void update();
  /// Call it between two steps, at any rate. Reports `extended` if the budget was extended; both
  /// warnings may then be repeated. Reports `low_budget_warning` once from the stage `warn` on. If
  /// time is enforced, reports `timeout_warning` once, when a fifth of it is left, or when the
  /// share of `warn` is used if that is earlier.
  void warn();
  void paused() { tell(budget_reports::paused); }
  void resumed() { tell(budget_reports::resumed); }

 private:
  void tell(std::string_view name);

  ProgressTracker& tracker_;
  const ExecutionBudget& budget_;
  std::atomic<std::int64_t> extensions_said_ = 0;
  std::atomic<bool> low_said_ = false;
  std::atomic<bool> timeout_said_ = false;
};

/// Returns a report of kind `budget`. `child`: the session of the figures; empty: its own.
[[nodiscard]] Report budget_report(std::string_view name, const BudgetFigures& figures,
                                   std::string_view child = {});

}  // namespace watchdog
