// How a run ends that was cut off, and what it keeps.

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "loop/running.h"

namespace watchdog::test {
namespace {

TEST_F(Running, is_complete_only_if_its_model_could_have_gone_on) {
  // A model that works for `needs` requests and then answers; it also answers if it must.
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  std::set<std::string> reasons_seen;
  for (int round = 0; round < 100; ++round) {
    const int needs = 1 + below(12);
    const bool tools_in_text = below(4) == 0;  // offered in the prompt instead of the request
    BudgetLimits limits;
    if (below(2) == 0) limits.steps = 1 + below(12);
    if (below(3) == 0) limits.tokens = 40 * (1 + below(12));
    if (below(3) == 0) limits.tool_calls = 1 + below(12);
    RunOptions own = options;
    if (below(2) == 0) own.iterations_max = 1 + below(12);
    int asked = 0;
    bool forced = false;
    const Model working = [&](const ChatRequest& request, const ChatSink&, const std::stop_token&) {
      ++asked;
      const auto& shown = request.messages.back().content;
      const bool must = shown.find("FINAL STEP") != std::string::npos;
      EXPECT_EQ(request.tools.empty(), must || tools_in_text);
      forced = must;
      ChatAnswer answer{.text = "answer " + std::to_string(asked), .output_tokens = 40};
      if (!must && asked < needs) answer.tool_calls = {{.id = "1", .name = "t"}};
      return Result<ChatAnswer, Failure>(std::move(answer));
    };
    ProgressTracker one({.session = "r" + std::to_string(round),
                         .database = database,
                         .sidecar = false,
                         .clock = &clock});
    watchdog::Run run(
        {.tracker = one,
         .callbacks = {.reflect = [&](Iteration& now) -> Result<Reflection, Failure> {
                         auto answer = now.ask({.messages = {{.role = "user", .content = "q"}},
                                                .tools = tools_in_text ? "" : "[]"});
                         if (!answer) return answer.error();
                         return Reflection{.assessment = answer->tool_calls.empty()
                                                             ? Assessment::task_complete
                                                             : Assessment::going_on,
                                           .data = answer->text};
                       },
                       .act = act},
         .model = working,
         .budget = std::make_shared<ExecutionBudget>(clock, limits),
         .clock = &clock},
        own);
    const auto end = run.go();
    SCOPED_TRACE("round " + std::to_string(round) + ": " + end.outcome.error);
    EXPECT_EQ(end.outcome.kind == OutcomeKind::completed, asked == needs && !forced);
    if (end.outcome.kind != OutcomeKind::completed) {
      EXPECT_EQ(end.outcome.kind, OutcomeKind::incomplete);
    }
    EXPECT_EQ(end.last.data, "answer " + std::to_string(asked));  // the answer is kept
    auto reader = StoreReader::open(database);
    const auto kept = reader->fold(*reader->session(one.session()));
    EXPECT_EQ(kept->history.notes->outcome->reason, end.outcome.reason);
    EXPECT_EQ(kept->history.notes->outcome->subject, end.outcome.subject);
    reasons_seen.insert(reason_and_subject(end.outcome));
  }
  EXPECT_EQ(reasons_seen, (std::set<std::string>{
                              "task_complete", "max_iterations_reached", "budget_exhausted: steps",
                              "budget_exhausted: tokens", "budget_exhausted: tool_calls"}));
}

TEST_F(Running, asks_for_an_opinion_although_the_file_is_behind) {
  ASSERT_TRUE(tracker.flush());
  // Another writer is in its turn while a session begins, loops and is doubted.
  const int writers = ::open((database.string() + "-writer").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writers, 0);
  ASSERT_EQ(flock(writers, LOCK_EX), 0);
  ProgressTracker late({.session = "late",
                        .database = database,
                        .sidecar = false,
                        .refusal_max = 10min,
                        .clock = &clock,
                        .log = [](const std::string&) {}});
  std::atomic<bool> refused = false;
  late.listen([&](const Report& report) {
    if (report.kind == ReportKind::opinion) refused = true;
  });
  const auto self = std::filesystem::path("/proc/self/task") / std::to_string(gettid()) / "stat";
  const auto waits = [&] {
    std::ifstream file(self);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    return text.substr(text.rfind(')'), 3) == ") S";
  };
  // The turn ends when the run waits for it, or has asked too early.
  const std::jthread other([&] {
    while (late.judged().health.kind != HealthKind::suspect &&
           late.judged().health.kind != HealthKind::looping)
      std::this_thread::yield();
    while (!refused && !waits()) std::this_thread::yield();
    close(writers);
  });
  std::vector<ChatRequest> asked;
  const auto opinion = checker_for(late, agreeing(&asked));
  options.iterations_max = 6;
  options.status_every = 1;
  options.check_wait = 10min;  // until it answers, which it does at once
  watchdog::Run run(
      {.tracker = late,
       .callbacks = {.reflect = [](Iteration&) { return Reflection{.data = "read it again"}; },
                     .act =
                         [](Iteration& now, const Reflection&) {
                           now.tracker().tool_call("read_file", R"({"path":"a"})");
                           now.tracker().tool_result("read_file", "nothing in it");
                           return Act{.tool = "read_file", .reported = true};
                         }},
       .checker = opinion.get(),
       .clock = &clock},
      options);
  run.go();
  ASSERT_FALSE(asked.empty());
  EXPECT_NE(asked[0].messages.back().content.find("nothing in it"), std::string::npos)
      << asked[0].messages.back().content;
  auto reader = StoreReader::open(database);
  for (const auto& event : all_events(*reader, "late")) {
    if (event.report.kind != ReportKind::opinion) continue;
    EXPECT_EQ(event.report.content.find("not asked"), std::string::npos) << event.report.content;
  }
}

TEST_F(Running, keeps_what_came_of_an_answer_when_its_time_is_over) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.duration = 60s},
                                             BudgetThresholds{.enforce_time = true});
  model = [&](const ChatRequest&, const ChatSink& sink,
              const std::stop_token& stop) -> Result<ChatAnswer, Failure> {
    sink({.pieces = 1}, "The first ");
    sink({.pieces = 2}, "half of it");
    clock.advance(61s);
    sink({.pieces = 3}, ".");
    EXPECT_TRUE(stop.stop_requested());
    return Failure{.reason = std::string(reasons::cancelled), .message = "called off"};
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    if (now.number() == 1) return Reflection{.data = "calls read_file"};
    auto answer = now.ask({.messages = {{.role = "user", .content = "q"}}});
    if (!answer) return answer.error();
    return Reflection{.assessment = Assessment::task_complete, .data = answer->text};
  };
  const auto end = go();
  expect_end(end, OutcomeKind::incomplete, reasons::budget_time);
  EXPECT_EQ(end.last.data, "The first half of it.");
  std::string kept;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::message) kept = event.report.content;
  }
  EXPECT_EQ(kept, "The first half of it.");
}

TEST_F(Running, keeps_only_what_came_of_the_newest_answer) {
  // Of three tries the second gives up in its middle, and the third is cancelled in its.
  std::stop_source parent;
  int asked = 0;
  options.iterations_max = 5;
  model = [&](const ChatRequest&, const ChatSink& sink,
              const std::stop_token&) -> Result<ChatAnswer, Failure> {
    ++asked;
    const auto number = std::to_string(asked);
    sink({.pieces = 1}, "answer " + number);
    if (asked == 1) return ChatAnswer{.text = "answer 1"};
    if (asked == 2) {
      return Failure{
          .reason = std::string(reasons::connection_lost), .message = "lost", .recoverable = true};
    }
    parent.request_stop();
    return Failure{.reason = std::string(reasons::cancelled), .message = "called off"};
  };
  reflect = [](Iteration& now) -> Result<Reflection, Failure> {
    auto answer = now.ask({.messages = {{.role = "user", .content = "q"}}});
    if (!answer) return answer.error();
    return Reflection{.data = answer->text};
  };
  const auto end = go(parent.get_token());
  EXPECT_EQ(end.outcome.kind, OutcomeKind::cancelled);
  EXPECT_EQ(end.last.data, "answer 3");
}

TEST_F(Running, reports_when_its_budget_was_extended) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 10});
  reflect = [&](Iteration& now) {
    if (now.number() == 4) {
      EXPECT_TRUE(budget->extend({.steps = 10}).ok());
    }
    return Reflection{
        .assessment = now.number() == 6 ? Assessment::task_complete : Assessment::going_on,
        .data = std::to_string(now.number())};
  };
  go();
  std::vector<std::string> shown;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::budget) shown.push_back(event.report.name);
  }
  EXPECT_EQ(std::count(shown.begin(), shown.end(), "extended"), 1);
  // The last pass extends it as well: nothing comes after that but the end.
  ProgressTracker late({.session = "late", .database = database, .sidecar = false});
  watchdog::Run run({.tracker = late,
                     .callbacks = {.reflect =
                                       [&](Iteration&) {
                                         EXPECT_TRUE(budget->extend({.steps = 1}).ok());
                                         return Reflection{.assessment = Assessment::task_complete};
                                       },
                                   .act = act},
                     .budget = budget});
  run.go();
  auto reader = StoreReader::open(database);
  int extended = 0;
  for (const auto& event : all_events(*reader, "late")) {
    if (event.report.name == budget_reports::extended) ++extended;
  }
  EXPECT_EQ(extended, 1);
}

}  // namespace
}  // namespace watchdog::test
