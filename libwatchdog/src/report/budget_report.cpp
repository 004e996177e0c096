#include <algorithm>

#include "watchdog/tracker.h"

namespace watchdog {

Report budget_report(std::string_view name, const BudgetFigures& figures, std::string_view child) {
  Report report;
  report.kind = ReportKind::budget;
  report.name = name;
  report.call_id = child;
  report.detail = figures;
  return report;
}

void BudgetReporter::report_figures(std::string_view name) {
  reporter_.report(budget_report(name, budget_.figures()));
}

void BudgetReporter::update() {
  report_figures(budget_reports::update);
  warn();
}

void BudgetReporter::warn() {
  const auto extensions = budget_.extensions();
  if (extensions_said_.exchange(extensions) != extensions) {
    low_said_ = false;
    timeout_said_ = false;
    report_figures(budget_reports::extended);
  }
  const auto figures = budget_.figures();
  const auto say_once = [&](std::atomic<bool>& said, std::string_view name) {
    if (!said.exchange(true)) reporter_.report(budget_report(name, figures));
  };
  if (figures.stage >= BudgetStage::warn) {
    say_once(low_said_, budget_reports::low_budget_warning);
  }
  const double used = share_used(figures, BudgetAxis::time).value_or(0);
  if (figures.enforce_time && used >= std::min(budget_.thresholds().warn, 0.8)) {
    say_once(timeout_said_, budget_reports::timeout_warning);
  }
}

}  // namespace watchdog
