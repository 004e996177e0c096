#include "watchdog/run.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "loop/running.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Running, reports_each_phase_and_what_came_of_it) {
  reflect = [](Iteration& now) {
    return Reflection{
        .assessment = now.number() == 3 ? Assessment::task_complete : Assessment::going_on,
        .data = "step " + std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::completed, reasons::task_complete);
  EXPECT_EQ(end.iterations, 3);
  EXPECT_EQ(end.last.data, "step 3");
  std::vector<std::string> changes;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::state_change) changes.push_back(event.report.name);
  }
  EXPECT_EQ(changes,
            (std::vector<std::string>{"reflection_complete", "tool_call", "reflection_complete",
                                      "tool_call", "reflection_complete"}));
  const auto history = judged().history;
  EXPECT_EQ(history.iteration, 3);
  EXPECT_EQ(history.heartbeats, 5);
}

TEST_F(Running, waits_as_long_as_the_model_takes) {
  // 28 s a reflection, 330 s for a prompt; and once a week.
  reflect = [&](Iteration& now) {
    clock.advance(now.number() == 2 ? 330s : now.number() == 3 ? Millis{168h} : 28s);
    return Reflection{
        .assessment = now.number() == 5 ? Assessment::task_complete : Assessment::going_on,
        .data = "step " + std::to_string(now.number())};
  };
  expect_end(go(), OutcomeKind::completed, reasons::task_complete);
}

TEST_F(Running, ends_by_the_failsafe_with_one_turn_for_the_answer) {
  std::vector<int> final;
  int acts = 0;
  std::vector<std::string> shown;
  reflect = [&](Iteration& now) {
    if (now.final()) final.push_back(now.number());
    shown.push_back(now.budget());
    return Reflection{.data = "step " + std::to_string(now.number())};
  };
  act = [&](Iteration& now, const Reflection&) {
    ++acts;
    return Act{.tool = "edit", .data = "file " + std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::incomplete, reasons::max_iterations_reached);
  EXPECT_EQ(end.iterations, 25);
  EXPECT_EQ(end.last.data, "step 25");
  EXPECT_EQ(final, std::vector<int>{25});
  EXPECT_EQ(acts, 24);
  // It was warned before.
  EXPECT_NE(shown.at(20).find("LOW BUDGET"), std::string::npos) << shown.at(20);
  EXPECT_NE(shown.at(24).find("FINAL STEP"), std::string::npos) << shown.at(24);
}

TEST_F(Running, may_complete_in_its_last_iteration_if_no_model_was_cut_off) {
  // The run accepts `task_complete` from a reflection that asked no model.
  options.iterations_max = 1;
  bool final = false;
  reflect = [&](Iteration& now) {
    final = now.final();
    return Reflection{.assessment = Assessment::task_complete};
  };
  expect_end(go(), OutcomeKind::completed, reasons::task_complete);
  EXPECT_TRUE(final);
}

TEST_F(Running, ends_by_each_failure_with_its_own_reason) {
  for (const auto reason :
       {reasons::connection_refused, reasons::host_not_found, reasons::tls_failed,
        reasons::connection_lost, reasons::authentication, reasons::context_exceeded,
        reasons::model_client_error, reasons::model_server_error, reasons::rate_limited,
        reasons::malformed_answer, reasons::tool_error}) {
    ProgressTracker own(
        {.session = std::string(reason), .database = database, .sidecar = false, .clock = &clock});
    watchdog::Run run({.tracker = own,
                       .callbacks = {.reflect = [&](Iteration&) -> Result<Reflection, Failure> {
                                       return Failure{
                                           .reason = std::string(reason),
                                           .message = "because of " + std::string(reason)};
                                     },
                                     .act = act},
                       .clock = &clock});
    const auto end = run.go();
    EXPECT_EQ(end.outcome.kind, OutcomeKind::failed);
    EXPECT_EQ(end.outcome.reason, reason);
    EXPECT_EQ(end.outcome.error, "because of " + std::string(reason));
    auto reader = StoreReader::open(database);
    const auto kept = reader->fold(*reader->session(std::string(reason)));
    EXPECT_EQ(kept->history.notes->outcome->reason, reason);
    EXPECT_NE(own.progress().find("\"reason\":\"" + std::string(reason) + "\""), std::string::npos);
  }
}

TEST_F(Running, ends_when_the_agent_says_that_it_failed) {
  reflect = [](Iteration&) {
    return Reflection{.assessment = Assessment::task_failed, .reason = "the disk is read-only"};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::failed, reasons::task_failed);
  EXPECT_EQ(end.outcome.error, "the disk is read-only");
}

TEST_F(Running, ends_after_three_reflections_of_low_confidence_in_a_row) {
  const std::vector<double> confidence = {0.2, 0.29, 0.3, 0.1, 0.0, 0.2, 0.9};
  reflect = [&](Iteration& now) {
    return Reflection{.confidence = confidence.at(now.number() - 1),
                      .data = std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::failed, reasons::low_confidence);
  EXPECT_EQ(end.iterations, 6);
}

TEST_F(Running, ends_by_what_a_callback_throws) {
  act = [](Iteration&, const Reflection&) -> Result<Act, Failure> {
    throw std::runtime_error("oops");
  };
  auto end = go();
  expect_end(end, OutcomeKind::failed, reasons::error);
  EXPECT_EQ(end.outcome.error, "act threw: oops");
}

TEST_F(Running, is_cancelled_by_a_parent_or_a_person_while_the_model_works) {
  std::stop_source parent;
  model = [&](const ChatRequest&, const ChatSink&,
              const std::stop_token& stop) -> Result<ChatAnswer, Failure> {
    parent.request_stop();  // in the middle of it
    EXPECT_TRUE(stop.stop_requested());
    return Failure{.reason = "cancelled_by_user", .message = "called off"};
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({.messages = {{.role = "user", .content = "think"}}});
    if (!answer) return answer.error();
    return Reflection{};
  };
  const auto end = go(parent.get_token());
  expect_end(end, OutcomeKind::cancelled, reasons::cancelled);
  EXPECT_EQ(end.outcome.subject, reasons::parent);
}

TEST_F(Running, hears_a_cancel_that_comes_through_the_file) {
  ASSERT_TRUE(tracker.flush());
  model = [&](const ChatRequest&, const ChatSink&,
              const std::stop_token& stop) -> Result<ChatAnswer, Failure> {
    auto store = Store::open({.database = database, .clock = &clock});
    Batch batch{.session = "s", .creation = Creation::refuse};
    batch.reports.push_back(
        {.kind = ReportKind::cancel, .detail = CancelRequest{.by = "user", .reason = "enough"}});
    EXPECT_TRUE(store->append({&batch, 1}));
    // A server that never answers: only the cancel ends this wait.
    std::mutex mutex;
    std::condition_variable_any never_notified;
    std::unique_lock guard(mutex);
    never_notified.wait(guard, stop, [] { return false; });
    return Failure{.reason = "cancelled_by_user", .message = "called off"};
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({.messages = {{.role = "user", .content = "think"}}});
    if (!answer) return answer.error();
    return Reflection{};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::cancelled, reasons::cancelled);
  EXPECT_EQ(end.outcome.subject, reasons::user);
  EXPECT_EQ(end.outcome.error, "enough");
}

TEST_F(Running, asks_again_what_may_go_well_and_waits_for_the_backend_meanwhile) {
  int asked = 0;
  std::vector<std::string> seen;
  model = [&](const ChatRequest&, const ChatSink& sink,
              const std::stop_token&) -> Result<ChatAnswer, Failure> {
    seen.push_back(tracker.judged().history.notes->waiting_for);
    if (++asked <= 5) {
      return Failure{.reason = std::string(reasons::model_server_error),
                     .message = "503",
                     .recoverable = true};
    }
    sink({.pieces = 1, .bytes = 5}, "done.");
    seen.push_back(std::string(name_of(tracker.judged().history.lifecycle)));
    return ChatAnswer{.text = "done."};
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({.messages = {{.role = "user", .content = "think"}}});
    if (!answer) return answer.error();
    return Reflection{.assessment = Assessment::task_complete, .data = answer->text};
  };
  expect_end(go(), OutcomeKind::completed, reasons::task_complete);
  EXPECT_EQ(asked, 6);
  EXPECT_EQ(seen.at(1), "backend");
  EXPECT_EQ(seen.at(6), "running");  // words came: it does not wait any more
}

TEST_F(Running, gives_up_after_five_more_tries_and_at_once_where_that_cannot_help) {
  for (const bool recoverable : {true, false}) {
    ProgressTracker own({.session = recoverable ? "r" : "u",
                         .database = database,
                         .sidecar = false,
                         .clock = &clock});
    int asked = 0;
    watchdog::Run run({.tracker = own,
                       .callbacks = {.reflect = [](Iteration& now) -> Result<Reflection, Failure> {
                                       const auto answer = now.ask({});
                                       if (!answer) return answer.error();
                                       return Reflection{};
                                     },
                                     .act = act},
                       .model = [&](const ChatRequest&, const ChatSink&,
                                    const std::stop_token&) -> Result<ChatAnswer, Failure> {
                         ++asked;
                         return Failure{.reason = std::string(reasons::connection_refused),
                                        .message = "no",
                                        .recoverable = recoverable};
                       },
                       .clock = &clock},
                      options);
    EXPECT_EQ(run.go().outcome.reason, reasons::connection_refused);
    EXPECT_EQ(asked, recoverable ? 6 : 1);
  }
}

TEST_F(Running, reports_the_model_its_budget_at_the_end_and_keeps_its_prompt) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 10});
  std::vector<ChatRequest> requests;
  model = [&](const ChatRequest& request, const ChatSink&, const std::stop_token&) {
    requests.push_back(request);
    return Result<ChatAnswer, Failure>(
        ChatAnswer{.text = "ok", .prompt_tokens = 10, .output_tokens = 2});
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({.messages = {{.role = "system", .content = "be good"},
                                              {.role = "user", .content = "think"}},
                                 .tools = "[]"});
    if (!answer) return answer.error();
    return Reflection{.data = std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::incomplete, reasons::budget_exhausted);
  EXPECT_EQ(end.iterations, 10);
  EXPECT_EQ(end.budget.steps, 10);
  EXPECT_EQ(end.budget.tokens, 120);
  for (const auto& request : requests) {
    EXPECT_EQ(request.messages[0].content, "be good");
    EXPECT_TRUE(request.messages[1].content.starts_with("think"));
  }
  EXPECT_NE(requests[0].messages[1].content.find("NOMINAL"), std::string::npos);
  EXPECT_EQ(requests[1].messages[1].content, "think");
  EXPECT_NE(requests[8].messages[1].content.find("LOW BUDGET"), std::string::npos);
  EXPECT_NE(requests[9].messages[1].content.find("FINAL STEP"), std::string::npos);
  EXPECT_EQ(requests[9].tools, "");
}

TEST_F(Running, reports_how_much_of_its_budget_it_uses) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 10});
  go();
  std::vector<std::string> shown;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::budget) shown.push_back(event.report.name);
  }
  EXPECT_EQ(std::count(shown.begin(), shown.end(), "update"), 10);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), "low_budget_warning"), 1);
  EXPECT_NE(tracker.progress().find("\"budget\":{"), std::string::npos);
}

/// A model that says so little that nothing runs out.
TEST_F(Running, is_never_ended_by_time_that_is_only_advice) {
  // What explorers get: 30 steps, 300 seconds that nobody enforces, and a slow model.
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 30, .duration = 300s});
  reflect = [&](Iteration& now) {
    clock.advance(60s);
    return Reflection{.data = std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::incomplete, reasons::budget_exhausted);
  EXPECT_EQ(end.iterations, 28);
  EXPECT_NE(end.outcome.error.find("steps: 93 %"), std::string::npos) << end.outcome.error;
}

TEST_F(Running, may_take_as_many_iterations_as_its_budget_has_steps) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 100});
  EXPECT_EQ(go().iterations, 91);  // the last 10 % are one turn for the answer
}

TEST_F(Running, has_its_last_step_for_the_answer_also_within_an_iteration) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 9});
  std::vector<ChatRequest> asked;
  model = agreeing(&asked);
  std::vector<bool> finals;
  reflect = [&](Iteration& now) -> Result<Reflection, Failure> {
    for (int count = 0; count < 50; ++count) {
      const auto answer = now.ask({.messages = {{.role = "user", .content = "q"}}, .tools = "[]"});
      finals.push_back(now.final());
      if (!answer) return answer.error();
    }
    return Reflection{};
  };
  expect_end(go(), OutcomeKind::incomplete, reasons::budget_exhausted);
  ASSERT_EQ(asked.size(), 9U);
  EXPECT_EQ(asked[7].tools, "[]");
  EXPECT_EQ(asked[8].tools, "");
  EXPECT_NE(asked[8].messages.back().content.find("FINAL STEP"), std::string::npos);
  EXPECT_TRUE(finals[8]);
}

TEST_F(Running, is_warned_of_the_failsafe_also_with_a_budget_of_something_else) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.tokens = 1'000'000});
  std::vector<ChatRequest> asked;
  model = agreeing(&asked);
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({.messages = {{.role = "user", .content = "q"}}});
    if (!answer) return answer.error();
    return Reflection{.data = std::to_string(now.number())};
  };
  expect_end(go(), OutcomeKind::incomplete, reasons::max_iterations_reached);
  ASSERT_EQ(asked.size(), 25U);
  EXPECT_NE(asked[22].messages.back().content.find("LOW BUDGET"), std::string::npos);
  EXPECT_NE(asked[24].messages.back().content.find("FINAL STEP"), std::string::npos);
}

TEST_F(Running, is_charged_for_plans_and_for_the_tools_its_model_asks_for) {
  budget =
      std::make_shared<ExecutionBudget>(clock, BudgetLimits{.tool_calls = 10, .tokens = 10'000});
  model = [](const ChatRequest& request, const ChatSink& sink,
             const std::stop_token&) -> Result<ChatAnswer, Failure> {
    if (!request.schema.empty())
      return ChatAnswer{.text = R"({"steps":["a"]})", .output_tokens = 40};
    sink({.pieces = 5, .bytes = 20}, "word");  // a server that does not count
    return ChatAnswer{.text = "",
                      .tool_calls = {{.id = "1", .name = "t"}, {.id = "2", .name = "t"}}};
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto plan = now.plan("do it");
    if (!plan) return plan.error();
    const auto answer = now.ask({});
    if (!answer) return answer.error();
    return Reflection{.assessment = Assessment::task_complete};
  };
  const auto end = go();
  EXPECT_EQ(end.budget.tokens, 45);
  EXPECT_EQ(end.budget.tool_calls, 2);
  EXPECT_EQ(end.budget.steps, 2);
}

TEST_F(Running, does_not_pay_for_waiting_for_the_model) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.duration = 60s},
                                             BudgetThresholds{.enforce_time = true});
  int asked = 0;
  model = [&](const ChatRequest&, const ChatSink&,
              const std::stop_token&) -> Result<ChatAnswer, Failure> {
    if (++asked == 1) {
      return Failure{
          .reason = std::string(reasons::rate_limited), .message = "429", .recoverable = true};
    }
    return ChatAnswer{.text = "ok"};
  };
  options.retry_first = 20ms;
  std::jthread meanwhile([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      if (tracker.judged().history.notes->waiting_for == backend) {
        clock.advance(600s);
        return;
      }
      std::this_thread::yield();
    }
  });
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({});
    if (!answer) return answer.error();
    return Reflection{.assessment = Assessment::task_complete};
  };
  expect_end(go(), OutcomeKind::completed, reasons::task_complete);
}

TEST_F(Running, says_when_it_could_not_ask_for_an_opinion) {
  act = [&](Iteration& now, const Reflection&) {
    now.tracker().tool_call("read_file", R"({"path":"a"})");
    now.tracker().tool_result("read_file", "nothing in it");
    EXPECT_TRUE(now.tracker().flush());
    return Act{.tool = "read_file", .reported = true};
  };
  reflect = [](Iteration&) { return Reflection{.data = "read it again"}; };
  const auto opinion = checker_for(tracker, agreeing(), {.per_session_max = 0});
  checker = opinion.get();
  go();
  std::vector<std::string> said;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::opinion) said.push_back(event.report.content);
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with("not asked: ")) << said[0];
}

TEST_F(Running, ends_incomplete_when_tokens_are_used_up) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.tokens = 100});
  model = [&](const ChatRequest&, const ChatSink&, const std::stop_token&) {
    return Result<ChatAnswer, Failure>(ChatAnswer{.text = "ok", .output_tokens = 40});
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    const auto answer = now.ask({});
    if (!answer) return answer.error();
    return Reflection{.data = std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::incomplete, reasons::budget_exhausted);
  EXPECT_EQ(end.outcome.subject, "tokens");
  EXPECT_EQ(end.iterations, 3);
}

TEST_F(Running, does_not_end_by_a_duration_that_nobody_enforces) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.duration = 60s});
  options.iterations_max = 5;
  reflect = [&](Iteration& now) {
    clock.advance(600s);
    return Reflection{.data = std::to_string(now.number())};
  };
  expect_end(go(), OutcomeKind::incomplete, reasons::max_iterations_reached);
}

TEST_F(Running, ends_by_a_duration_that_its_owner_enforces) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.duration = 60s},
                                             BudgetThresholds{.enforce_time = true});
  reflect = [&](Iteration& now) {
    clock.advance(25s);
    return Reflection{.data = std::to_string(now.number())};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::incomplete, reasons::budget_time);
  EXPECT_EQ(end.iterations, 3);
  const auto events = stored();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.report.name == budget_reports::timeout_warning;
  }));
}

TEST_F(Running, ends_by_old_limits_only_where_they_were_asked_for) {
  reflect = [&](Iteration& now) {
    clock.advance(400s);
    return Reflection{
        .assessment = now.number() == 3 ? Assessment::task_complete : Assessment::going_on,
        .data = std::to_string(now.number())};
  };
  options.old_limits.mode = Migration::time_based;
  const auto end = go();
  expect_end(end, OutcomeKind::cancelled, reasons::legacy_time_limit);
}

TEST_F(Running, says_what_old_limits_would_have_cost) {
  reflect = [&](Iteration& now) {
    clock.advance(now.number() == 2 ? 700s : 10s);
    return Reflection{
        .assessment = now.number() == 3 ? Assessment::task_complete : Assessment::going_on,
        .data = std::to_string(now.number())};
  };
  act = [&](Iteration&, const Reflection& reflection) {
    clock.advance(45s);
    return Act{.tool = "edit", .data = reflection.data};
  };
  options.old_limits.mode = Migration::compare;
  expect_end(go(), OutcomeKind::completed, reasons::task_complete);
  std::vector<std::string> passed;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::limit) passed.push_back(event.report.name);
  }
  EXPECT_EQ(passed, (std::vector<std::string>{"began", "tool", "task", "tool"}));
}

TEST_F(Running, is_called_for_help_once_a_streak_when_it_repeats_itself) {
  act = [&](Iteration& now, const Reflection&) {
    now.tracker().tool_call("read_file", R"({"path":"a"})");
    now.tracker().tool_result("read_file", "nothing in it");
    return Act{.tool = "read_file", .reported = true};
  };
  reflect = [](Iteration&) { return Reflection{.data = "read it again"}; };
  std::vector<Trouble> troubles;
  recover = [&](const Trouble& trouble) { troubles.push_back(trouble); };
  expect_end(go(), OutcomeKind::incomplete, reasons::max_iterations_reached);
  ASSERT_EQ(troubles.size(), 1U);
  EXPECT_EQ(troubles[0].health.kind, HealthKind::looping);
  EXPECT_NE(troubles[0].advice.find("Change the approach"), std::string::npos);
}

TEST_F(Running, may_end_confirmed_stuck_but_not_by_repetition_alone) {
  act = [&](Iteration& now, const Reflection&) {
    now.tracker().tool_call("read_file", R"({"path":"a"})");
    now.tracker().tool_result("read_file", "nothing in it");
    return Act{.tool = "read_file", .reported = true};
  };
  reflect = [](Iteration&) { return Reflection{.data = "read it again"}; };
  options.on_confirmed_stuck = OnConfirmedStuck::fail;
  expect_end(go(), OutcomeKind::incomplete, reasons::max_iterations_reached);
}

TEST_F(Running, ends_confirmed_stuck_where_its_owner_wants_that_and_a_model_says_so_too) {
  act = [&](Iteration& now, const Reflection&) {
    now.tracker().tool_call("read_file", R"({"path":"a"})");
    now.tracker().tool_result("read_file", "nothing in it");
    EXPECT_TRUE(now.tracker().flush());
    return Act{.tool = "read_file", .reported = true};
  };
  reflect = [](Iteration&) { return Reflection{.data = "read it again"}; };
  const auto opinion = checker_for(
      tracker,
      [](const ChatRequest&, const ChatSink&,
         const std::stop_token&) -> Result<ChatAnswer, Failure> {
        return ChatAnswer{.text = "B: it reads the same file again", .tokens = {{"B", 0.97}}};
      });
  checker = opinion.get();
  options.check_wait = 1h;  // until it answers, which it does at once
  options.on_confirmed_stuck = OnConfirmedStuck::fail;
  std::vector<Trouble> troubles;
  recover = [&](const Trouble& trouble) { troubles.push_back(trouble); };
  const auto end = go();
  expect_end(end, OutcomeKind::failed, reasons::confirmed_stuck);
  EXPECT_LT(end.iterations, 25);
  ASSERT_EQ(troubles.size(), 1U);
  // The opinion is an event of the session.
  int opinions = 0;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::opinion) ++opinions;
  }
  EXPECT_EQ(opinions, 2);  // the question and the answer
}

TEST_F(Running, goes_on_without_a_store_and_records_again_when_it_is_back) {
  ASSERT_TRUE(tracker.flush());
  std::set<int> done;
  reflect = [&](Iteration& now) {
    if (now.number() == 2) {
      std::filesystem::remove(database);
      std::filesystem::create_directory(database);  // nothing can be written there
    }
    if (now.number() == 4) std::filesystem::remove(database);
    done.insert(now.number());
    return Reflection{
        .assessment = now.number() == 6 ? Assessment::task_complete : Assessment::going_on,
        .data = std::to_string(now.number())};
  };
  const auto end = go();
  EXPECT_EQ(done.size(), 6U);
  expect_end(end, OutcomeKind::completed, reasons::task_complete);
}

TEST_F(Running, goes_on_while_the_disk_is_full_and_records_again_when_there_is_room) {
  ASSERT_TRUE(tracker.flush());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);  // an error of a write, as on a real disk
  reflect = [&](Iteration& now) {
    if (now.number() == 2) {
      const rlimit none{.rlim_cur = 1, .rlim_max = before.rlim_max};
      setrlimit(RLIMIT_FSIZE, &none);
      EXPECT_FALSE(tracker.flush()) << "the disk is not full";
    }
    if (now.number() == 4) setrlimit(RLIMIT_FSIZE, &before);
    return Reflection{
        .assessment = now.number() == 6 ? Assessment::task_complete : Assessment::going_on,
        .data = std::to_string(now.number())};
  };
  const auto end = go();
  setrlimit(RLIMIT_FSIZE, &before);
  expect_end(end, OutcomeKind::completed, reasons::task_complete);
  EXPECT_EQ(judged().history.state_changes, 11);  // none of them is missing
}

}  // namespace
}  // namespace watchdog::test
