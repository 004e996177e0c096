#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"
#include "watchdog/tool_runner.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class Task : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  std::filesystem::path path = dir / "w.db";
  ProgressTracker::Config reporting{.database = path, .sidecar = false};
  ProgressTracker tracker{{.session = "parent", .database = path, .sidecar = false}};
  std::stop_source stop;
  TaskToolSettings settings;
  TaskSpec spec{.prompt = "look, with token=abcdef123456",
                .agent_type = "explore",
                .limits = {.steps = 10, .timeout = 100s}};

  TaskSite site(const BudgetLimits& limits = {}, const BudgetThresholds& thresholds = {}) {
    return {.tracker = tracker,
            .budget = std::make_shared<ExecutionBudget>(clock, limits, thresholds),
            .stop = stop.get_token(),
            .reporting = reporting};
  }
  std::vector<Event> stored(const std::string& session) {
    EXPECT_TRUE(tracker.flush().ok());
    auto reader = StoreReader::open(path);
    EXPECT_TRUE(reader.ok());
    return all_events(*reader, session);
  }
  static TaskAnswer answer(OutcomeKind kind, std::string text, std::string reason = {}) {
    return {.outcome = {.kind = kind, .reason = std::move(reason)}, .text = std::move(text)};
  }
};

TEST_F(Task, runs_in_a_session_and_a_budget_of_its_own) {
  const auto parent = site({.steps = 100});
  const auto result =
      run_task(spec, parent, settings, [&](const TaskSpec& task, const TaskSite& child) {
        EXPECT_EQ(task.prompt, spec.prompt);
        child.budget->step();
        child.budget->step();
        return answer(OutcomeKind::completed, "it is there", "task_complete");
      });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->text, "it is there");
  EXPECT_EQ(result->outcome.kind, OutcomeKind::completed);
  EXPECT_EQ(result->ended_by, std::nullopt);
  EXPECT_EQ(result->figures.steps, 2);
  EXPECT_EQ(result->figures.limits.steps, 10);
  EXPECT_EQ(parent.budget->figures().steps, 2) << "its parent pays";

  auto reader = StoreReader::open(path);
  const auto row = reader->session(result->session);
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->spec.parent, "parent");
  EXPECT_EQ(row->spec.agent, "explore");
  EXPECT_EQ(row->spec.task, "look, with token=[redacted]");
  const auto events = stored(result->session);
  EXPECT_EQ(events.at(1).report.kind, ReportKind::budget) << "its limits are known at once";
  EXPECT_EQ(std::get<Outcome>(events.back().report.detail).kind, OutcomeKind::completed);
}

TEST_F(Task, reports_its_parent_of_each_step) {
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite& child) {
    clock.advance(45s);
    child.budget->step();
    clock.advance(5s);
    child.budget->step();
    return answer(OutcomeKind::completed, "");
  });
  std::vector<BudgetFigures> shown;
  for (const auto& event : stored("parent")) {
    if (event.report.kind != ReportKind::budget) continue;
    EXPECT_EQ(event.report.name, "subagent_step_progress");
    EXPECT_EQ(event.report.call_id, result->session);
    shown.push_back(std::get<BudgetFigures>(event.report.detail));
  }
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(elapsed_seconds(shown[0]), 45);
  EXPECT_EQ(remaining_seconds(shown[0]), 55);
  EXPECT_EQ(steps_left(shown[0]), 9);
  EXPECT_EQ(elapsed_seconds(shown[1]), 50);
}

TEST_F(Task, whose_steps_run_out_gives_what_it_had) {
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite& child) {
    std::string found;
    while (!child.budget->exhausted()) {
      if (child.budget->must_finalize()) found += " and so on";
      if (found.empty()) found = "half of it";
      child.budget->step();
    }
    return answer(OutcomeKind::incomplete, found);
  });
  ASSERT_TRUE(result.ok()) << "no error that would hide the work";
  EXPECT_EQ(reason_and_subject(result->outcome), "budget_exhausted: steps");
  EXPECT_EQ(result->ended_by, BudgetAxis::steps);
  EXPECT_EQ(result->text,
            "[PARTIAL RESULT: the task ran out of steps (10 of 10 used). What it had so far "
            "follows.]\nhalf of it and so on");
  EXPECT_EQ(reason_and_subject(std::get<Outcome>(stored(result->session).back().report.detail)),
            "budget_exhausted: steps");
  const auto text = json::parse(to_json(*result));
  EXPECT_EQ(text["partial"], true);
  EXPECT_EQ(text["ended_by"], "steps");
  EXPECT_EQ(text["budget"]["current_step"], 10);
  EXPECT_EQ(text["budget"]["steps_remaining"], 0);
  EXPECT_EQ(text["session_id"], result->session);
}

TEST_F(Task, with_a_reason_of_its_own_is_not_called_partial) {
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite&) {
    return answer(OutcomeKind::incomplete, "a", "max_iterations_reached");
  });
  EXPECT_EQ(result->ended_by, std::nullopt);
  EXPECT_EQ(result->text, "a");
  EXPECT_EQ(result->outcome.reason, "max_iterations_reached");
}

TEST_F(Task, whose_enforced_time_runs_out_is_marked_as_a_timeout) {
  settings.thresholds.enforce_time = true;
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite& child) {
    clock.advance(101s);
    EXPECT_EQ(child.budget->exhausted(), BudgetAxis::time);
    return answer(OutcomeKind::incomplete, "");
  });
  EXPECT_EQ(result->outcome.reason, "budget_time");
  EXPECT_EQ(result->text,
            "[TIMEOUT: the task ran out of time (101 seconds used). It had no result yet.]");
}

TEST_F(Task, is_not_ended_by_time_unless_somebody_wanted_that) {
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite& child) {
    clock.advance(24h);
    EXPECT_EQ(child.budget->exhausted(), std::nullopt);
    EXPECT_EQ(child.budget->stage(), BudgetStage::warn);
    return answer(OutcomeKind::completed, "slow, but done");
  });
  EXPECT_EQ(result->text, "slow, but done");
}

TEST_F(Task, that_nothing_is_left_for_is_not_started) {
  const auto parent = site({.steps = 2});
  parent.budget->step();
  const auto result = run_task(spec, parent, settings, [](const auto&, const TaskSite&) {
    ADD_FAILURE() << "started";
    return TaskAnswer{};
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->session, "");
  EXPECT_EQ(result->ended_by, BudgetAxis::steps);
  EXPECT_FALSE(parent.budget->exhausted()) << "the last step is for the parent's own answer";
}

TEST_F(Task, is_not_started_for_a_parent_that_was_cancelled) {
  stop.request_stop();
  const auto result = run_task(spec, site(), settings, [](const auto&, const TaskSite&) {
    ADD_FAILURE() << "started";
    return TaskAnswer{};
  });
  EXPECT_EQ(result->outcome.kind, OutcomeKind::cancelled);
  EXPECT_EQ(reason_and_subject(result->outcome), "cancelled: parent");
}

TEST_F(Task, is_cancelled_with_its_parent) {
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite& child) {
    stop.request_stop();
    EXPECT_TRUE(child.stop.stop_requested());
    return answer(OutcomeKind::cancelled, "", "cancelled_by_parent");  // as programs said before
  });
  EXPECT_EQ(reason_and_subject(std::get<Outcome>(stored(result->session).back().report.detail)),
            "cancelled: parent");
}

TEST_F(Task, that_throws_has_failed) {
  const auto result = run_task(
      spec, site(), settings,
      [](const auto&, const TaskSite&) -> TaskAnswer { throw std::runtime_error("no disk"); });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->outcome.kind, OutcomeKind::failed);
  EXPECT_EQ(result->outcome.error, "no disk");
  const auto end = stored(result->session).back();
  EXPECT_EQ(std::get<Outcome>(end.report.detail).error, "no disk");
}

TEST_F(Task, that_ended_its_session_itself_is_left_at_that) {
  const auto result = run_task(spec, site(), settings, [&](const auto&, const TaskSite& child) {
    EXPECT_TRUE(child.tracker.fail("no model", "connection_refused").ok());
    return answer(OutcomeKind::failed, "", "connection_refused");
  });
  const auto events = stored(result->session);
  EXPECT_EQ(events.back().report.kind, ReportKind::end);
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const auto& e) { return e.report.kind == ReportKind::end; }),
            1);
}

TEST_F(Task, may_give_tasks_itself_five_deep) {
  int deepest = 0;
  std::optional<Error> refused;
  TaskRunner deeper = [&](const TaskSpec& task, const TaskSite& child) {
    deepest = std::max(deepest, child.budget->depth());
    child.budget->step();
    const auto result = run_task(task, child, settings, deeper);
    if (!result) refused = result.error();
    return answer(OutcomeKind::completed, result ? result->text : "deep");
  };
  auto parent = site();
  parent.budget.reset();
  const auto result = run_task(spec, parent, settings, deeper);
  EXPECT_EQ(result->text, "deep");
  EXPECT_EQ(deepest, 5);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, ErrorCode::exhausted);
  EXPECT_EQ(result->figures.steps, 5) << "what its own tasks used included";
}

}  // namespace
}  // namespace watchdog::test
