#include <gtest/gtest.h>

#include "store/store_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"
#include "watchdog/tracker.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

class BudgetReports : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  ProgressTracker tracker{{.session = "s", .database = dir / "w.db", .sidecar = false}};

  std::vector<std::string> reported() {
    EXPECT_TRUE(tracker.flush().ok());
    auto reader = StoreReader::open(dir / "w.db");
    std::vector<std::string> names;
    for (const auto& event : all_events(*reader, "s")) {
      if (event.report.kind == ReportKind::budget) names.push_back(event.report.name);
    }
    return names;
  }
};

using WordList = std::vector<std::string>;

TEST_F(BudgetReports, report_each_step_and_warn_once) {
  ExecutionBudget budget(clock, {.steps = 10});
  BudgetReporter reporter(tracker, budget);
  for (int i = 0; i < 10; ++i) {
    budget.step();
    reporter.update();
  }
  WordList expected(8, "update");
  expected.insert(expected.end(), {"low_budget_warning", "update", "update"});
  EXPECT_EQ(reported(), expected);
  EXPECT_EQ(tracker.judged().history.notes->budget->figures.steps, 10);
  EXPECT_EQ(tracker.judged().history.state_changes, 0) << "no progress by itself";
}

TEST_F(BudgetReports, warn_of_time_before_it_ends_also_between_steps) {
  ExecutionBudget budget(clock, {.duration = 100s}, {.enforce_time = true});
  BudgetReporter reporter(tracker, budget);
  clock.advance(79s);
  reporter.warn();
  EXPECT_EQ(reported(), WordList{});
  clock.advance(1s);
  for (int i = 0; i < 3; ++i) reporter.warn();
  EXPECT_EQ(reported(), (WordList{"low_budget_warning", "timeout_warning"}));
}

TEST_F(BudgetReports, warn_of_time_early_where_the_owner_wants_it) {
  ExecutionBudget budget(clock, {.duration = 100s}, {.warn = 0.5, .enforce_time = true});
  BudgetReporter reporter(tracker, budget);
  clock.advance(50s);
  reporter.warn();
  EXPECT_EQ(reported(), (WordList{"low_budget_warning", "timeout_warning"}));
}

TEST_F(BudgetReports, never_call_advice_a_timeout) {
  ExecutionBudget budget(clock, {.duration = 100s});
  BudgetReporter reporter(tracker, budget);
  clock.advance(1h);
  reporter.warn();
  EXPECT_EQ(reported(), WordList{"low_budget_warning"});
}

TEST_F(BudgetReports, report_extensions_and_warn_again_after_them) {
  ExecutionBudget budget(clock, {.steps = 1});
  BudgetReporter reporter(tracker, budget);
  reporter.warn();
  ASSERT_TRUE(budget.extend({.steps = 99}).ok());
  reporter.warn();
  reporter.warn();
  for (int i = 0; i < 80; ++i) budget.step();
  reporter.paused();
  reporter.resumed();
  reporter.warn();
  EXPECT_EQ(reported(), (WordList{"low_budget_warning", "extended", "paused", "resumed",
                                  "low_budget_warning"}));
}

TEST_F(BudgetReports, are_stored_as_they_were_said) {
  const auto figures = BudgetFigures{.limits = {.cost = 0.7, .duration = 12'345ms},
                                     .cost = 0.1,
                                     .elapsed = 1'234ms,
                                     .enforce_time = true};
  tracker.report(budget_report(budget_reports::subagent_step_progress, figures, "child"));
  ASSERT_TRUE(tracker.flush().ok());
  auto reader = StoreReader::open(dir / "w.db");
  const auto stored = all_events(*reader, "s").back().report;
  EXPECT_EQ(stored.call_id, "child");
  const auto& read = std::get<BudgetFigures>(stored.detail);
  EXPECT_EQ(read.limits.duration, 12'345ms);
  EXPECT_EQ(read.elapsed, 1'234ms);
  EXPECT_EQ(read.cost, 0.1);
  EXPECT_TRUE(read.enforce_time);
  EXPECT_EQ(read.axis, BudgetAxis::cost);
  EXPECT_FALSE(tracker.judged().history.notes->budget.has()) << "it is the child's";
}

}  // namespace
}  // namespace watchdog::test
