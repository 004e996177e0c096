#include "watchdog/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "files/sha256.h"
#include "support/temp_dir.h"
#include "support/tool_bench.h"
#include "watchdog/tool.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::as;
using test::eventually;
using test::Latch;
using test::said;
using test::text_of;
using test::ToolBench;
using Kind = ToolEvent::Kind;

// -- results

TEST(Executor, gives_what_the_tool_says) {
  ToolBench bench;
  bench.add({.name = "echo"}, [](ToolContext& now) { return said(now.call().arguments); });
  EXPECT_EQ(text_of(bench.call("echo", R"({"a": 1})")), R"({"a": 1})");
  EXPECT_EQ(text_of(bench.call("echo", "")), "{}") << "some models write nothing for nothing";
  const auto events = bench.events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events[0].kind, Kind::start);
  EXPECT_EQ(events[1].kind, Kind::result);
}

TEST(Executor, whatever_a_tool_throws_is_a_typed_failure) {
  ToolBench bench;
  bench.add({.name = "number"}, [](ToolContext&) -> ToolReply { throw 42; });
  bench.add({.name = "memory"}, [](ToolContext&) -> ToolReply { throw std::bad_alloc(); });
  bench.add({.name = "words"},
            [](ToolContext&) -> ToolReply { throw std::runtime_error("no such host"); });
  for (const auto* tool : {"number", "memory", "words"}) {
    const auto report = bench.call(tool);
    EXPECT_EQ(as<ToolFailure>(report).kind, FailureKind::exception) << tool;
    EXPECT_FALSE(as<ToolFailure>(report).message.empty()) << tool;
  }
  EXPECT_EQ(as<ToolFailure>(bench.call("words")).message, "no such host");
}

TEST(Executor, a_failure_keeps_the_text_of_the_tool) {
  ToolBench bench;
  bench.add({.name = "grep"}, [](ToolContext&) {
    return ToolReply{
        .ok = false, .text = "nothing found", .failure = FailureKind::exit_nonzero, .exit_code = 1};
  });
  const auto report = bench.call("grep");
  EXPECT_EQ(as<ToolFailure>(report).exit_code, 1);
  EXPECT_EQ(as<ToolFailure>(report).partial.text, "nothing found");
}

TEST(Executor, reports_the_agents_code_of_each_error) {
  ToolBench bench;
  std::atomic<int> errors{0};
  bench.parts.on_tool_error = [&](const CallReport&) { ++errors; };
  bench.add({.name = "ok"}, [](ToolContext&) { return said("x"); });
  bench.add({.name = "bad"}, [](ToolContext&) { return ToolReply{.ok = false}; });
  (void)bench.call("ok");
  (void)bench.call("bad");
  (void)bench.call("none");
  EXPECT_EQ(errors, 2);
}

TEST(Executor, an_observer_that_throws_harms_nobody) {
  ToolBench bench;
  bench.add({.name = "ok"}, [](ToolContext&) { return said("x"); });
  ToolExecutor executor({.tools = bench.tools,
                         .observer = [](const ToolEvent&) { throw 1; },
                         .on_tool_error = [](const CallReport&) { throw 2; }});
  auto turn = bench.turn();
  EXPECT_EQ(text_of(executor.execute(turn, {"1", "ok", ""})), "x");
  EXPECT_TRUE(is_error(executor.execute(turn, {"1", "none", ""}).outcome));
}

// -- what is not even started

TEST(Executor, refuses_what_it_cannot_call) {
  ToolBench bench;
  std::atomic<int> invoked{0};
  bench.add({.name = "t"}, [&](ToolContext&) {
    ++invoked;
    return said("x");
  });
  auto turn = bench.turn();
  const std::vector<ToolCall> calls{{"1", "t", "{}"},      {"1", "t", "{}"},
                                    {"2", "none", "{}"},   {"3", "t", "[1]"},
                                    {"4", "t", "{\"a\":"}, {"5", "t", std::string(100, '[')},
                                    {"6", "t", "\xff"},    {"7", std::string(5'000, 'n'), "{}"}};
  const auto reports = bench.executor().execute_batch(turn, calls);
  ASSERT_EQ(reports.size(), calls.size());
  EXPECT_EQ(text_of(reports[0]), "x");
  EXPECT_EQ(as<ToolDenied>(reports[1]).reason, DenyReason::duplicate_call);
  EXPECT_EQ(as<ToolDenied>(reports[2]).reason, DenyReason::unknown_tool);
  for (const int at : {3, 4, 5, 6}) {
    EXPECT_EQ(as<ToolDenied>(reports[at]).reason, DenyReason::invalid_arguments) << at;
  }
  EXPECT_EQ(as<ToolDenied>(reports[7]).reason, DenyReason::unknown_tool);
  EXPECT_EQ(invoked, 1);
}

TEST(Executor, calls_without_an_id_are_distinguished) {
  ToolBench bench;
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  auto turn = bench.turn();
  const std::vector<ToolCall> calls{{"", "t", "{}"}, {"", "t", "{}"}};
  for (const auto& report : bench.executor().execute_batch(turn, calls)) {
    EXPECT_EQ(text_of(report), "x");
    EXPECT_EQ(report.call.id, "");
  }
}

TEST(Executor, a_mode_and_the_final_turn_forbid_calls) {
  ToolBench bench;
  bench.add({.name = "web"}, [](ToolContext&) { return said("x"); });
  bench.add({.name = "note", .allowed_in_final_turn = true},
            [](ToolContext&) { return said("x"); });
  bench.parts.policy = [](const ToolCall& call) {
    return std::string(call.tool == "web" ? "web is off" : "");
  };
  EXPECT_EQ(as<ToolDenied>(bench.call("web")).message, "web is off");
  EXPECT_EQ(as<ToolDenied>(bench.call("web")).reason, DenyReason::policy);
  auto last = bench.turn({.final = true});
  EXPECT_EQ(text_of(bench.calls(last, {"note"})[0]), "x");
  bench.parts.policy = {};
  ToolBench other;
  other.add({.name = "web"}, [](ToolContext&) { return said("x"); });
  auto final_turn = other.turn({.final = true});
  EXPECT_EQ(as<ToolDenied>(other.calls(final_turn, {"web"})[0]).reason, DenyReason::final_turn);
}

TEST(Executor, a_tool_that_can_be_neither_stopped_nor_fenced_is_refused_by_default) {
  const ToolSpec raw{
      .name = "raw", .effect = Effect::external_write, .stoppable = Stoppable::not_stoppable};
  ToolBench bench;
  bench.add(raw, [](ToolContext&) { return said("x"); });
  EXPECT_EQ(as<ToolDenied>(bench.call("raw")).reason, DenyReason::policy);
  EXPECT_EQ(ToolRegistry().add(make_tool(raw, nullptr)).error().field, "stoppable");
  ToolBench bold({.allow_unfenced = true});
  bold.add(raw, [](ToolContext&) { return said("x"); });
  EXPECT_EQ(text_of(bold.call("raw")), "x");
}

// -- deadlines

TEST(Executor, a_silent_tool_is_given_up_after_two_minutes_and_the_turn_goes_on) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "hang"}, [latch](ToolContext& now) {
    return ToolReply{.ok = latch.wait(now.stop()), .text = "told to stop"};
  });
  bench.add({.name = "next"}, [](ToolContext&) { return said("x"); });
  auto turn = bench.turn();
  auto report = bench.begin(turn, "hang");
  latch.await();
  bench.advance(119'999ms);
  EXPECT_EQ(report.wait_for(20ms), std::future_status::timeout);
  bench.advance(1ms);
  (void)as<ToolTimeout>(bench.advance_until(report));
  EXPECT_EQ(text_of(bench.executor().execute(turn, {"2", "next", "{}"})), "x");
}

TEST(Executor, a_timeout_says_what_it_was) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "hang", .effect = Effect::none}, [latch](ToolContext& now) {
    now.partial("so far");
    latch.wait();
    return said("late");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "hang");
  latch.await();
  bench.advance(120s);
  const auto report = bench.advance_until(running);
  const auto& timeout = as<ToolTimeout>(report);
  EXPECT_EQ(timeout.kind, TimeoutKind::idle);
  EXPECT_EQ(timeout.limit, 120s);
  EXPECT_TRUE(timeout.still_running);
  EXPECT_EQ(timeout.effects, EffectState::none) << "it has none";
  EXPECT_EQ(timeout.retry, RetryAdvice::safe);
  EXPECT_EQ(timeout.partial.text, "so far");
  EXPECT_EQ(report.deadline, "default");
  const auto words = render_for_model(report);
  EXPECT_NE(words.find("\"hang\" made no progress for 120s"), std::string::npos) << words;
  EXPECT_NE(words.find("so far"), std::string::npos) << words;
  latch.open();
}

TEST(Executor, a_tool_that_does_not_say_what_it_changes_is_never_called_harmless) {
  const test::TempDir dir;
  const auto file = dir / "written";
  // Cut off by its deadline or by a person, back in time or never: it wrote a file before.
  for (const bool is_cancelled : {false, true}) {
    for (const bool comes_back : {false, true}) {
      SCOPED_TRACE(std::to_string(is_cancelled) + std::to_string(comes_back));
      ToolBench bench;
      bench.stop_the_clock();
      const Latch latch;
      bench.add({.name = "undeclared"}, [&, latch](ToolContext& now) {
        std::ofstream(file) << "x";
        if (comes_back) {
          (void)latch.wait(now.stop());
          now.throw_if_stopped();
        }
        latch.wait();
        return said("late");
      });
      auto turn = bench.turn();
      auto running = bench.begin(turn, "undeclared");
      latch.await();
      ASSERT_TRUE(std::filesystem::exists(file));
      if (is_cancelled) {
        bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
      } else {
        bench.advance(120s);
      }
      const auto report = bench.advance_until(running);
      const auto words = render_for_model(report);
      EXPECT_EQ(words.find("nothing was changed"), std::string::npos) << words;
      EXPECT_NE(words.find("Effects: unknown"), std::string::npos) << words;
      EXPECT_NE(to_json(report).find(R"("effects":"unknown")"), std::string::npos)
          << to_json(report);
      if (!is_cancelled) {
        EXPECT_EQ(as<ToolTimeout>(report).retry, RetryAdvice::verify_first);
        EXPECT_NE(words.find("Check the state before repeating it"), std::string::npos) << words;
      }
      // It keeps no other tool of its kind from running.
      bench.add({.name = "other"}, [](ToolContext&) { return said("fine"); });
      EXPECT_EQ(text_of(bench.call("other")), "fine");
      latch.open();
    }
  }
}

TEST(ToolRegistry, refuses_a_missing_tool) {
  ToolRegistry tools;
  for (const auto& none : {std::shared_ptr<Tool>(), read_file_tool(nullptr),
                           list_files_tool(nullptr), write_file_tool(nullptr, true),
                           shell_tool(nullptr, nullptr), artifact_read_tool(nullptr)}) {
    const auto added = tools.add(none);
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error().code, ErrorCode::invalid);
  }
  EXPECT_EQ(tools.definitions(), "[]");
}

TEST(Executor, a_tool_without_a_deadline_is_still_listed_and_can_be_called_off) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "own", .deadline = {.idle = 0ms}}, [latch](ToolContext& now) {
    EXPECT_FALSE(now.remaining());
    (void)latch.wait(now.stop());
    return said("x");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "own");
  latch.await();
  bench.advance(100h);
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  const auto active = bench.turns().active();
  ASSERT_EQ(active.size(), 1U);
  ASSERT_EQ(active[0].running.size(), 1U);
  EXPECT_EQ(active[0].running[0].tool, "own");
  EXPECT_EQ(active[0].running[0].elapsed, 100h);
  bench.turns().abort_call(turn.id(), "1", {.origin = CancelOrigin::api});
  EXPECT_EQ(as<ToolCancelled>(bench.advance_until(running)).why.origin, CancelOrigin::api);
}

TEST(Executor, accepted_progress_moves_the_deadline_and_heartbeats_do_not) {
  for (const bool progresses : {true, false}) {
    ToolBench bench;
    bench.stop_the_clock();
    const Latch first;
    const Latch second;
    bench.add({.name = "t"}, [&, first, second](ToolContext& now) {
      (void)first.wait(now.stop());
      progresses ? now.progress(1, 2, "half") : now.heartbeat("alive");
      return ToolReply{.ok = second.wait(now.stop()), .text = "x"};
    });
    auto turn = bench.turn();
    auto running = bench.begin(turn, "t");
    first.await();
    bench.advance(119s);
    first.open();
    second.await();
    EXPECT_EQ(bench.turns().active()[0].running[0].note, progresses ? "half" : "alive");
    bench.advance(1s);
    if (progresses) {
      EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
      second.open();
      const auto report = bench.advance_until(running, 1ms);
      EXPECT_EQ(text_of(report), "x");
      EXPECT_EQ(report.progress_accepted, 1);
    } else {
      EXPECT_EQ(as<ToolTimeout>(bench.advance_until(running)).kind, TimeoutKind::idle);
    }
  }
}

TEST(Executor, a_call_that_finishes_exactly_at_its_deadline_succeeds) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "t", .deadline = {.idle = 1s}}, [&, latch](ToolContext&) {
    latch.wait();
    bench.clock.advance(1s);  // the deadline, exactly; nobody has looked yet
    return said("x");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  latch.await();
  latch.open();
  EXPECT_EQ(text_of(running.get()), "x");
}

TEST(Executor, a_result_within_the_grace_counts) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch never_opened;
  const Latch stopped;
  bench.add({.name = "t"}, [never_opened, stopped](ToolContext& now) {
    (void)never_opened.wait(now.stop());
    stopped.wait();
    return said("just in time");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  never_opened.await();  // the tool runs, so its deadline counts
  while (bench.turns().active()[0].running[0].elapsed < 120s) bench.advance(120s);
  stopped.await();  // the executor has requested its stop: the grace has begun
  stopped.open();
  EXPECT_EQ(text_of(running.get()), "just in time");
}

TEST(Executor, a_hard_limit_is_one_whatever_progress_says) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch first;
  const Latch second;
  bench.add({.name = "t", .deadline = {.hard = 130s}}, [first, second](ToolContext& now) {
    (void)first.wait(now.stop());
    now.progress(1);
    return ToolReply{.ok = second.wait(now.stop())};
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  first.await();
  bench.advance(119s);
  first.open();
  second.await();
  bench.advance(10'999ms);
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  bench.advance(1ms);
  const auto report = bench.advance_until(running);
  EXPECT_EQ(as<ToolTimeout>(report).kind, TimeoutKind::hard);
  EXPECT_EQ(as<ToolTimeout>(report).limit, 130s);
}

TEST(Executor, real_time_bounds_a_tool_that_ignores_everything) {
  ToolBench bench;
  const Latch latch;
  bench.add({.name = "deaf", .deadline = {.idle = 100ms}}, [latch](ToolContext&) {
    latch.wait();
    return said("late");
  });
  const auto begin = std::chrono::steady_clock::now();
  const auto report = bench.call("deaf");
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(as<ToolTimeout>(report).still_running);
  EXPECT_GE(took, 2'000ms);
  EXPECT_LT(took, 12s) << "100 ms, 2 s of grace, and a busy machine";
  EXPECT_EQ(bench.executor().leaks().abandoned, 1U);
  EXPECT_EQ(bench.count(Kind::abandoned), 1);
  latch.open();
  EXPECT_TRUE(eventually([&] { return bench.executor().leaks().abandoned == 0; }));
  EXPECT_TRUE(eventually([&] { return bench.count(Kind::reclaimed) == 1; }));
  EXPECT_EQ(bench.count(Kind::late), 1);
  EXPECT_EQ(bench.count(Kind::result), 1) << "the late one is none";
  for (const auto& event : bench.events()) {
    if (event.kind != Kind::late) continue;
    EXPECT_EQ(event.bytes, 4U);
    EXPECT_EQ(event.detail, sha256_of("late"));
  }
}

// -- what timed out

TEST(Executor, a_call_that_must_not_run_twice_is_refused_for_the_turn_after_a_timeout) {
  ToolBench bench;
  bench.stop_the_clock();
  const auto stops = [](ToolContext& now) {
    const Latch latch;
    (void)latch.wait(now.stop());
    return ToolReply{.ok = false};
  };
  bench.add({.name = "mail", .effect = Effect::irreversible}, stops);
  bench.add({.name = "look", .effect = Effect::none}, stops);
  bench.add({.name = "undeclared"}, stops);
  bench.add({.name = "said_so", .retry_on_timeout = false}, stops);
  // The machine gets some time for each minute of the clock. A call that does not return within two
  // seconds after the request to stop would be given up.
  const auto over = [&](std::future<CallReport>& call) {
    while (call.wait_for(100ms) != std::future_status::ready) bench.advance(60s);
    return call.get();
  };
  for (const auto& [tool, again] : {std::pair{"mail", false}, std::pair{"look", true},
                                    std::pair{"undeclared", false}, std::pair{"said_so", false}}) {
    auto turn = bench.turn();
    auto first = bench.begin(turn, tool);
    const auto report = over(first);
    EXPECT_TRUE(std::holds_alternative<ToolTimeout>(report.outcome)) << tool;
    auto second = bench.begin(turn, tool, "{}", "2");
    const auto repeated = over(second);
    EXPECT_EQ(std::holds_alternative<ToolTimeout>(repeated.outcome), again) << tool;
    if (!again) {
      EXPECT_EQ(as<ToolDenied>(repeated).reason, DenyReason::disabled);
    }
    auto other = bench.begin(turn, tool, R"({"a":1})", "3");
    const auto different = over(other);
    const bool is_off = tool == std::string("said_so");
    EXPECT_EQ(std::holds_alternative<ToolDenied>(different.outcome), is_off) << tool;
  }
}

TEST(Executor, three_timeouts_in_a_row_switch_a_tool_off_and_the_next_turn_tries_once) {
  ToolBench bench;
  bench.stop_the_clock();
  std::atomic<bool> works{false};
  bench.add({.name = "t", .effect = Effect::none}, [&](ToolContext& now) {
    if (works) return said("x");
    const Latch latch;
    (void)latch.wait(now.stop());
    return ToolReply{.ok = false};
  });
  const auto outcome = [&](Turn& turn) {
    auto running = bench.begin(turn, "t");
    return std::string(name_of(bench.advance_until(running, 60s).outcome));
  };
  auto first = bench.turn();
  EXPECT_EQ(outcome(first), "timeout");
  EXPECT_EQ(outcome(first), "timeout");
  EXPECT_EQ(outcome(first), "timeout");
  EXPECT_EQ(outcome(first), "denied");
  auto second = bench.turn();
  EXPECT_EQ(outcome(second), "timeout");
  EXPECT_EQ(outcome(second), "denied");
  works = true;
  auto third = bench.turn();
  EXPECT_EQ(outcome(third), "result");
  works = false;
  EXPECT_EQ(outcome(third), "timeout");
  EXPECT_EQ(outcome(third), "timeout") << "it is trusted again";
}

TEST(Executor, errors_that_a_tool_reports_do_not_disable_it) {
  ToolBench bench;
  bench.add({.name = "t"}, [](ToolContext&) { return ToolReply{.ok = false, .text = "no"}; });
  auto turn = bench.turn();
  for (int at = 0; at < 10; ++at) {
    EXPECT_EQ(as<ToolFailure>(bench.executor().execute(turn, {"1", "t", "{}"})).kind,
              FailureKind::tool_error);
  }
}

// -- hints

TEST(Executor, a_hint_is_followed_and_taken_out) {
  ToolBench bench;
  std::string seen;
  std::int64_t left = 0;
  bench.add({.name = "t"}, [&](ToolContext& now) {
    seen = now.call().arguments;
    left = now.remaining()->count();
    return said("x");
  });
  const auto report = bench.call("t", R"({"a":1,"_meta":{"timeout":7200000}})");
  EXPECT_EQ(seen, R"({"a":1})");
  EXPECT_GT(left, 3'500'000);
  EXPECT_LE(left, 3'600'000);
  EXPECT_NE(render_for_model(report).find("note: requested 7200s, clamped to 3600s"),
            std::string::npos);
}

TEST(Executor, the_authors_retry_setting_overrides_the_advice_from_effects) {
  EXPECT_EQ(retry_advice({.retry_on_timeout = false}, EffectState::none), RetryAdvice::do_not);
  EXPECT_EQ(retry_advice({.effect = Effect::irreversible, .retry_on_timeout = true},
                         EffectState::unknown),
            RetryAdvice::safe);
  ToolBench bench;
  bench.stop_the_clock();
  bench.add({.name = "t", .retry_on_timeout = false}, [](ToolContext& now) {
    const Latch latch;
    (void)latch.wait(now.stop());
    return ToolReply{.ok = false};
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  const auto report = bench.advance_until(running, 60s);
  EXPECT_EQ(as<ToolTimeout>(report).retry, RetryAdvice::do_not);
  EXPECT_EQ(render_for_model(report).find("repeat it with"), std::string::npos);
}

TEST(Executor, a_tool_that_cannot_be_run_is_not_said_to_have_timed_out) {
  ToolBench bench;
  bench.add({.name = "t"}, [](ToolContext&) {
    return ToolReply{.ok = false, .text = "no", .failure = FailureKind::spawn_failed};
  });
  auto turn = bench.turn();
  for (int at = 0; at < 3; ++at) (void)bench.executor().execute(turn, {"1", "t", "{}"});
  const auto report = bench.executor().execute(turn, {"1", "t", "{}"});
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::disabled);
  EXPECT_EQ(as<ToolDenied>(report).message.find("timeout"), std::string::npos)
      << as<ToolDenied>(report).message;
}

TEST(Executor, a_long_error_is_shown_as_whole_as_a_result) {
  ToolBench bench;
  std::string text;
  for (int line = 0; line < 200; ++line) text += "error in line " + std::to_string(line) + "\n";
  bench.add({.name = "compile"},
            [&](ToolContext&) { return ToolReply{.ok = false, .text = text}; });
  const auto words = render_for_model(bench.call("compile"));
  EXPECT_NE(words.find("error in line 0\n"), std::string::npos);
  EXPECT_NE(words.find("error in line 199\n"), std::string::npos);
}

TEST(Executor, a_result_that_came_before_the_cancel_is_one) {
  ToolBench bench;
  const Latch held;
  const Latch latch;
  bench.add({.name = "bad"}, [](ToolContext&) { return ToolReply{.ok = false}; });
  bench.add({.name = "t"}, [latch](ToolContext&) {
    latch.wait();
    return said("x");
  });
  bench.parts.on_tool_error = [held](const CallReport&) { held.wait(); };
  auto turn = bench.turn();
  auto batch = std::async(std::launch::async, [&] { return bench.calls(turn, {"t", "bad"}); });
  latch.await();
  held.await();  // the thread that decides is busy
  latch.open();
  ASSERT_TRUE(eventually([&] { return bench.executor().leaks().busy == 0; }));
  turn.scope().cancel({.origin = CancelOrigin::user});
  held.open();
  EXPECT_EQ(text_of(batch.get()[0]), "x");
}

}  // namespace
}  // namespace watchdog
