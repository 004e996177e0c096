#include "watchdog/tool_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"
#include "support/tool_bench.h"
#include "watchdog/reasons.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

ToolReply text(std::string words) {
  return {.text = std::move(words)};
}

/// An agent whose model asks for tools by a script, in a real run with a real file. Time is the
/// test's.
class ToolRun : public testing::Test {
 protected:
  TempDir directory;
  ManualClock clock;
  std::filesystem::path database = directory / "w.db";
  ProgressTracker tracker{
      {.session = "s", .database = database, .sidecar = false, .clock = &clock}};
  std::shared_ptr<ToolRegistry> tools = std::make_shared<ToolRegistry>();
  std::shared_ptr<ExecutionBudget> budget;
  ToolExecutor::Parts parts;
  ExecutorOptions options{.progress_every = Millis{1LL << 50U}, .look_longest = Millis{1LL << 50U}};
  RunOptions run_options{.check_wait = 0ms};
  std::function<void(const Trouble&)> recover;
  std::function<void(const ToolEvent&)> observer;
  Millis thinking = 0s;  ///< Virtual time of each answer of the model.
  Latch for_ever;        ///< Opened at the end: what hangs comes back then.

  /// The calls of each step; after them the model has an answer.
  std::vector<std::vector<ToolRequest>> script;
  std::vector<ChatMessage> talk;

  ~ToolRun() override { for_ever.open(); }

  void add(ToolSpec spec, std::function<ToolReply(ToolContext&)> invoke) {
    ASSERT_TRUE(tools->add(make_tool(std::move(spec), std::move(invoke))).ok());
  }
  ToolRunner& runner() {
    if (!runner_) {
      options.clock = &clock;
      runner_.emplace(ToolRunner::Parts{.tracker = tracker,
                                        .tools = tools,
                                        .budget = budget,
                                        .agent = "coder",
                                        .executor = parts,
                                        .observer = observer},
                      options);
    }
    return *runner_;
  }
  /// The clock runs on, and who waits for it looks.
  void pass(Millis time) {
    clock.advance(time);
    runner_->executor().tick();
  }
  /// Passes its deadline, and ends when its stop is requested.
  ToolReply time_out(ToolContext& now, Millis deadline) {
    pass(deadline);
    (void)for_ever.wait(now.stop());
    return {.ok = false};
  }
  /// Passes its deadline, and does not listen.
  ToolReply hang(ToolContext& now, Millis deadline) {
    (void)time_out(now, deadline);
    pass(options.cancel_grace);
    for_ever.wait();
    return text("much too late");
  }

  RunEnd go(const std::stop_token& stop = {}) {
    runner();
    watchdog::Run run(
        {.tracker = tracker,
         .callbacks = {.reflect = [&](Iteration& now) { return reflect(now); },
                       .act =
                           [&](Iteration& now, const Reflection&) {
                             const auto calls = talk.back().tool_calls;
                             for (auto& result : tool_messages(runner_->carry_out(now, calls)))
                               talk.push_back(std::move(result));
                             return Act{.reported = true};
                           },
                       .recover = recover},
         .model = [&](const ChatRequest&, const ChatSink&,
                      const std::stop_token&) -> Result<ChatAnswer, Failure> { return answer(); },
         .budget = budget,
         .clock = &clock},
        run_options);
    auto end = run.go(stop);
    EXPECT_TRUE(end.stored);
    return end;
  }

  /// The text that the model got for a call.
  [[nodiscard]] std::string shown(const std::string& id) const {
    const auto found = std::ranges::find(talk, id, &ChatMessage::tool_call_id);
    return found == talk.end() ? "nothing" : found->content;
  }
  /// The file's reports of turns and tools, one line per report.
  std::vector<std::string> events() {
    std::vector<std::string> all;
    for (const auto& [seq, session, prev, tick, at, late, origin, report] : stored()) {
      const bool is_tool = report.kind == ReportKind::tool_call ||
                           report.kind == ReportKind::tool_result || is_failure(report.kind) ||
                           report.kind == ReportKind::tool_progress;
      if (report.kind == ReportKind::turn) all.push_back(report.name);
      if (is_tool)
        all.push_back(std::string(name_of(report.kind)) + " " + report.name + " " + report.call_id);
    }
    return all;
  }
  std::vector<Event> stored(std::optional<ReportKind> kind = {}) {
    EXPECT_TRUE(tracker.flush());
    auto reader = StoreReader::open(database);
    EXPECT_TRUE(reader.ok());
    auto events = all_events(*reader, "s");
    std::erase_if(events, [&](const Event& event) { return kind && event.report.kind != *kind; });
    return events;
  }

 private:
  Result<Reflection, Failure> reflect(Iteration& now) {
    auto got = now.ask({.messages = talk, .tools = runner_->definitions()});
    if (!got) return got.error();
    talk.push_back({.role = "assistant", .content = got->text, .tool_calls = got->tool_calls});
    if (got->tool_calls.empty())
      return Reflection{.assessment = Assessment::task_complete, .data = got->text};
    const auto& first = got->tool_calls.front();
    return Reflection{.data = "calls " + first.name + " " + first.arguments};
  }
  ChatAnswer answer() {
    clock.advance(thinking);
    const auto step = steps_++;
    if (step >= script.size()) return {.text = "an answer", .output_tokens = 1};
    return {.text = {}, .tool_calls = script[step], .output_tokens = 1};
  }

  std::size_t steps_ = 0;
  std::optional<ToolRunner> runner_;
};

using Lines = std::vector<std::string>;

TEST_F(ToolRun, reports_each_call_and_what_came_of_it) {
  add({.name = "good"}, [](ToolContext&) { return text("fine"); });
  add({.name = "bad"}, [](ToolContext&) { return ToolReply{.ok = false, .text = "no such host"}; });
  add({.name = "slow", .deadline = {.idle = 9s}},
      [&](ToolContext& now) { return time_out(now, 9s); });
  script = {{{.id = "1", .name = "good", .arguments = R"({"a":1})"}},
            {{.id = "2", .name = "bad"}},
            {{.id = "3", .name = "slow"}},
            {{.id = "4", .name = "none"}}};
  const auto end = go();
  EXPECT_EQ(end.outcome.reason, reasons::task_complete);
  EXPECT_EQ(events(),
            (Lines{"turn_start", "tool_call good 1", "tool_result good 1", "turn_end",   //
                   "turn_start", "tool_call bad 2", "error bad 2", "turn_end",           //
                   "turn_start", "tool_call slow 3", "tool_timeout slow 3", "turn_end",  //
                   "turn_start", "tool_call none 4", "error none 4", "turn_end"}));
  const auto calls = stored(ReportKind::tool_call);
  EXPECT_EQ(calls[0].report.content, R"({"a":1})");
  EXPECT_EQ(calls[0].report.deadline, 120s);
  EXPECT_EQ(calls[2].report.deadline, 9s);
  const auto turns = stored(ReportKind::turn);
  EXPECT_EQ(calls[0].report.turn, turns[0].report.call_id);
  EXPECT_EQ(calls[3].report.turn, turns[6].report.call_id);
  EXPECT_EQ(std::get<TurnFacts>(turns[1].report.detail).reason, "completed");
  EXPECT_EQ(std::get<TurnFacts>(turns[1].report.detail).calls, 1);
  const auto timeout = stored(ReportKind::tool_timeout)[0].report;
  ASSERT_TRUE(timeout.timeout);
  EXPECT_EQ(timeout.timeout->kind, ToolTimeoutFacts::Kind::idle);
  EXPECT_EQ(timeout.timeout->limit, 9s);
  EXPECT_EQ(timeout.timeout->elapsed, 9s);
  EXPECT_FALSE(timeout.timeout->still_running);
  // The file has the words that the model got.
  EXPECT_TRUE(shown("3").starts_with(timeout.content.substr(0, 50))) << timeout.content;
  EXPECT_EQ(shown("1"), "fine");
  EXPECT_NE(shown("2").find("no such host"), std::string::npos) << shown("2");
  EXPECT_TRUE(shown("4").starts_with("[DENIED]")) << shown("4");
}

TEST_F(ToolRun, reports_how_far_a_call_is_with_what_counts_as_progress) {
  options.progress_every = 5s;
  std::atomic<int> count{0};
  observer = [&](const ToolEvent& event) {
    if (event.kind == ToolEvent::Kind::progress) ++count;
  };
  add({.name = "build"}, [&](ToolContext& now) {
    for (int step = 1; step <= 3; ++step) {
      now.progress(step, 3, "step " + std::to_string(step));
      now.progress(step);  // no further than before
      pass(5s);
      EXPECT_TRUE(eventually([&] { return count >= step; }));
    }
    return text("built");
  });
  script = {{{.id = "b", .name = "build"}}};
  go();
  const auto shown = stored(ReportKind::tool_progress);
  ASSERT_EQ(shown.size(), 3U);
  for (int step = 1; step <= 3; ++step) {
    const auto& facts = std::get<ToolProgress>(shown[step - 1].report.detail);
    EXPECT_EQ(facts.accepted, step);
    EXPECT_EQ(facts.value, step);
    EXPECT_EQ(facts.total, 3);
    EXPECT_EQ(facts.elapsed, step * 5s);
    EXPECT_EQ(shown[step - 1].report.content, "step " + std::to_string(step));
  }
}

TEST_F(ToolRun, is_aborted_by_turn_through_the_file_and_goes_on) {
  ASSERT_TRUE(tracker.flush());
  const auto abort = [&](const Report& report) {
    auto store = Store::open({.database = database, .clock = &clock});
    ASSERT_TRUE(store.ok());
    EXPECT_TRUE(say(*store, "s", {report}, Creation::refuse).ok());
  };
  add({.name = "edit", .effect = Effect::local_write, .idempotency = Idempotency::yes},
      [&](ToolContext& now) {
        EXPECT_TRUE(tracker.flush());  // the turn is known by now
        const bool is_all = now.call().id == "1";
        abort(abort_of(now.turn(), is_all ? "" : now.call().id, "enough"));
        (void)for_ever.wait(now.stop());
        return text("half done");
      });
  add({.name = "look"}, [](ToolContext&) { return text("seen"); });
  script = {{{.id = "1", .name = "edit"}, {.id = "2", .name = "edit"}, {.id = "3", .name = "look"}},
            {{.id = "4", .name = "edit"}, {.id = "5", .name = "look"}}};
  const auto end = go();
  EXPECT_EQ(end.outcome.reason, reasons::task_complete);
  // Only the model gets a report of a call that did not begin: the file has none.
  auto seen = events();
  EXPECT_EQ(std::erase(seen, "turn_abort"), 1) << "before or after the error";
  EXPECT_EQ(seen, (Lines{"turn_start", "tool_call edit 1", "error edit 1", "turn_end",  //
                         "turn_start", "tool_call edit 4", "error edit 4",              //
                         "tool_call look 5", "tool_result look 5", "turn_end"}));
  EXPECT_TRUE(
      shown("1").starts_with("[CANCELLED] Tool \"edit\" was interrupted after 0s: the turn "
                             "above was called off by user: enough.\n"))
      << shown("1");
  EXPECT_TRUE(
      shown("2").starts_with("[CANCELLED] Tool \"edit\" was not started: turn aborted by "
                             "user (enough).\n"))
      << shown("2");
  EXPECT_NE(shown("3").find("was not started"), std::string::npos) << shown("3");
  EXPECT_NE(shown("4").find("call cancelled by user (enough)"), std::string::npos) << shown("4");
  EXPECT_EQ(shown("5"), "seen");
  const auto turns = stored(ReportKind::turn);
  ASSERT_EQ(turns.size(), 5U);
  EXPECT_EQ(std::get<TurnFacts>(turns[1].report.detail).reason, "user");
  EXPECT_EQ(std::get<TurnFacts>(turns[2].report.detail).reason, "aborted");
}

TEST_F(ToolRun, that_times_out_in_the_same_way_again_and_again_loops_by_status) {
  add({.name = "fetch", .deadline = {.idle = 60s}},
      [&](ToolContext& now) { return time_out(now, 60s); });
  for (int step = 0; step < 30; ++step)
    script.push_back({{.id = std::to_string(step),
                       .name = "fetch",
                       .arguments = R"({"url":"http://example.org"})"}});
  std::vector<HealthKind> troubles;
  recover = [&](const Trouble& trouble) { troubles.push_back(trouble.health.kind); };
  const auto end = go();
  // Each call ends by its own deadline; the run by its failsafe, after any time.
  EXPECT_EQ(end.outcome.kind, OutcomeKind::incomplete);
  EXPECT_EQ(end.outcome.reason, reasons::max_iterations_reached);
  EXPECT_EQ(end.iterations, 25);
  EXPECT_EQ(stored(ReportKind::tool_timeout).size(), 24U);
  EXPECT_EQ(troubles, std::vector<HealthKind>{HealthKind::looping});
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::looping);
}

TEST_F(ToolRun, with_a_tool_that_hangs_asked_for_again_and_again_loops_by_status) {
  add({.name = "hang"}, [&](ToolContext& now) { return hang(now, 120s); });
  for (int step = 0; step < 30; ++step)
    script.push_back({{.id = std::to_string(step), .name = "hang"}});
  EXPECT_EQ(go().outcome.reason, reasons::max_iterations_reached);
  // The tool hangs twice. From then on each call is denied, and each denial is reported.
  EXPECT_EQ(stored(ReportKind::tool_timeout).size(), 2U);
  EXPECT_EQ(stored(ReportKind::error).size(), 22U);
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::looping);
}

TEST_F(ToolRun, with_a_slow_model_and_a_tool_that_hangs_is_not_ended_by_time) {
  thinking = 30s;
  add({.name = "hang"}, [&](ToolContext& now) { return hang(now, 120s); });
  add({.name = "look"}, [](ToolContext& now) { return text(now.call().arguments); });
  for (int step = 0; step < 20; ++step)
    script.push_back({{.id = std::to_string(step),
                       .name = step == 3 ? "hang" : "look",
                       .arguments = R"({"page":)" + std::to_string(step) + "}"}});
  const auto began = clock.since_boot();
  const auto end = go();
  EXPECT_EQ(end.outcome.reason, reasons::task_complete);
  EXPECT_EQ(end.iterations, 21);
  EXPECT_GE(clock.since_boot() - began, 21 * 30s + 122s);
  EXPECT_TRUE(shown("3").starts_with("[TIMEOUT] Tool \"hang\"")) << shown("3");
  EXPECT_NE(shown("3").find("still running"), std::string::npos) << shown("3");
  EXPECT_EQ(shown("4"), R"({"page":4})");
  const auto timeouts = stored(ReportKind::tool_timeout);
  ASSERT_EQ(timeouts.size(), 1U);
  EXPECT_EQ(timeouts[0].report.timeout->limit, 120s);
  EXPECT_TRUE(timeouts[0].report.timeout->still_running);
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::progressing);
}

TEST_F(ToolRun, can_look_at_itself) {
  budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 10});
  add({.name = "hang"}, [&](ToolContext& now) { return hang(now, 120s); });
  script = {{{.id = "1", .name = "hang"}},
            {{.id = "2", .name = "hang"}},
            {{.id = "3", .name = "hang"}},
            {{.id = "me", .name = "session_status"}}};
  go();
  const auto status = json::parse(shown("me"), nullptr, false);
  ASSERT_TRUE(status.is_object()) << shown("me");
  EXPECT_EQ(status["session"], "s");
  EXPECT_EQ(status["iteration"], 4);
  EXPECT_TRUE(status["health"].is_string());
  EXPECT_FALSE(status["reason"].get<std::string>().empty());
  EXPECT_EQ(status["tools"], (json{{"calls", 3},
                                   {"errors", 3},
                                   {"denied", 1},
                                   {"timeouts", 2},
                                   {"timed_out", {{"hang", 2}}},
                                   {"still_running_after_timeout", 2},
                                   {"quarantined", {"hang"}}}));
  EXPECT_EQ(status["turn"]["calls"], 1);
  EXPECT_EQ(status["turn"]["timeouts"], 0);
  EXPECT_EQ(status["budget"]["currentStep"], 4) << status["budget"].dump();
}

TEST_F(ToolRun, stops_its_calls_when_it_is_stopped) {
  std::stop_source parent;
  add({.name = "wait"}, [&](ToolContext& now) {
    parent.request_stop();
    EXPECT_FALSE(for_ever.wait(now.stop()));
    return text("interrupted");
  });
  script = {{{.id = "1", .name = "wait"}, {.id = "2", .name = "session_status"}}};
  const auto end = go(parent.get_token());
  EXPECT_EQ(end.outcome.kind, OutcomeKind::cancelled);
  EXPECT_EQ(reason_and_subject(end.outcome), "cancelled: parent");
  EXPECT_TRUE(shown("1").starts_with("[CANCELLED]")) << shown("1");
  const auto turns = stored(ReportKind::turn);
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[1].report.name, turn_reports::turn_abort);
  EXPECT_EQ(std::get<TurnFacts>(turns[1].report.detail).reason, "user");
}

TEST_F(ToolRun, that_a_limit_ends_says_so_of_the_turn_it_ends) {
  run_options.old_limits.mode = Migration::time_based;
  add({.name = "wait", .deadline = {.idle = 0ms}}, [&](ToolContext& now) {
    clock.advance(1h);
    EXPECT_FALSE(for_ever.wait(now.stop()));
    return text("interrupted");
  });
  script = {{{.id = "1", .name = "wait"}}};
  const auto end = go();
  EXPECT_EQ(end.outcome.reason, reasons::legacy_time_limit) << end.outcome.error;
  std::string why;
  for (const auto& turn : stored(ReportKind::turn)) {
    if (turn.report.name == turn_reports::turn_abort)
      why = std::get<TurnFacts>(turn.report.detail).reason;
  }
  EXPECT_EQ(why, "timeout");
}

TEST(RunScope, reports_a_turn_for_whose_sake_it_is_called_off) {
  const std::vector<std::pair<CancelOrigin, std::string>> table{
      {CancelOrigin::user, "user"},
      {CancelOrigin::api, "user"},
      {CancelOrigin::deadline, "timeout"},
      {CancelOrigin::budget, "timeout"},
      {CancelOrigin::watchdog, "error"},
      {CancelOrigin::shutdown, "error"},
      {CancelOrigin::client_disconnect, "user"}};
  for (const auto& [origin, word] : table) {
    std::mutex mutex;
    std::vector<std::string> shown;
    ManualClock clock;
    TurnRegistry turns({.clock = &clock, .observer = [&](const TurnEvent& event) {
                          const std::lock_guard guard(mutex);
                          if (event.kind == TurnEvent::Kind::abort) shown.push_back(event.reason);
                        }});
    std::stop_source stop;
    int asked = 0;
    const auto scope = CancelScope::bound_to(stop.get_token(), [&, why = origin] {
      ++asked;
      return CancelReason{.origin = why, .text = "because"};
    });
    {
      auto turn = turns.begin_in(scope, {});
      ASSERT_TRUE(turn.ok());
      auto below = turns.begin_in(turn->scope(), {}, turn->id());
      ASSERT_TRUE(below.ok());
      EXPECT_EQ(asked, 0) << "why is known when it happens";
      stop.request_stop();
    }
    EXPECT_EQ(asked, 1);
    const std::lock_guard guard(mutex);
    EXPECT_EQ(shown, (std::vector<std::string>{word, word}));
  }
}

TEST_F(ToolRun, has_no_tools_in_its_final_iteration_but_those_that_look) {
  std::atomic<int> invoked{0};
  add({.name = "look"}, [&](ToolContext&) {
    ++invoked;
    return text("seen");
  });
  run_options.iterations_max = 1;
  std::vector<CallReport> reports;
  runner();
  watchdog::Run run({.tracker = tracker,
                     .callbacks = {.reflect =
                                       [&](Iteration& now) {
                                         EXPECT_TRUE(now.final());
                                         const std::vector<ToolRequest> calls{
                                             {.id = "1", .name = "look"},
                                             {.id = "2", .name = "session_status"}};
                                         reports = runner().carry_out(now, calls);
                                         return Reflection{};
                                       },
                                   .act = [](Iteration&, const Reflection&) { return Act{}; }},
                     .clock = &clock},
                    run_options);
  run.go();
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(std::get<ToolDenied>(reports[0].outcome).reason, DenyReason::final_turn);
  EXPECT_EQ(name_of(reports[1].outcome), "result");
  EXPECT_EQ(invoked, 0);
}

TEST_F(ToolRun, gives_twenty_seven_calls_a_result_each_also_if_one_is_benignly_wrong) {
  add({.name = "grep"}, [](ToolContext& now) {
    if (now.call().id != "13") return text("found by " + now.call().id);
    return ToolReply{.ok = false, .failure = FailureKind::exit_nonzero, .exit_code = 1};
  });
  std::vector<ToolRequest> calls;
  for (int at = 0; at < 27; ++at) calls.push_back({.id = std::to_string(at), .name = "grep"});
  script = {calls};
  EXPECT_EQ(go().outcome.reason, reasons::task_complete);
  ASSERT_EQ(talk.size(), 29U);
  for (int at = 0; at < 27; ++at) {
    const auto& message = talk[at + 1];
    EXPECT_EQ(message.tool_call_id, std::to_string(at)) << "in the order of the calls";
    if (at == 13) continue;
    EXPECT_EQ(message.content, "found by " + std::to_string(at));
  }
  EXPECT_EQ(stored(ReportKind::tool_result).size(), 26U);
  EXPECT_EQ(stored(ReportKind::error).size(), 1U);
  auto untouched = talk;
  EXPECT_FALSE(repair_history(untouched));
}

}  // namespace
}  // namespace watchdog::test
