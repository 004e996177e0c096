// Several calls at once: order, isolation, locks, workers.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <numeric>

#include "support/temp_dir.h"
#include "support/tool_bench.h"
#include "watchdog/executor.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::as;
using test::eventually;
using test::Latch;
using test::said;
using test::ToolBench;
using Kind = ToolEvent::Kind;

TEST(Batch, of_nothing_is_nothing) {
  ToolBench bench;
  auto turn = bench.turn();
  EXPECT_TRUE(bench.calls(turn, {}).empty());
}

TEST(Batch, calls_without_effects_run_together) {
  ToolBench bench;
  const Latch latch;
  bench.add({.name = "t"}, [latch](ToolContext&) {
    latch.wait();
    return said("x");
  });
  auto turn = bench.turn();
  auto batch = std::async(std::launch::async, [&] { return bench.calls(turn, {"t", "t", "t"}); });
  latch.await(3);  // all three are in there
  latch.open();
  EXPECT_EQ(batch.get().size(), 3U);
}

TEST(Batch, one_that_hangs_costs_the_others_nothing) {
  ToolBench bench;
  bench.add({.name = "hang", .deadline = {.idle = 50ms}}, [](ToolContext& now) {
    const Latch latch;
    return ToolReply{.ok = latch.wait(now.stop())};
  });
  bench.add({.name = "t"}, [](ToolContext& now) { return said(now.call().id); });
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, {"t", "hang", "t", "none"});
  EXPECT_EQ(as<ToolExecutionResult>(reports[0]).output.text, "0");
  EXPECT_EQ(as<ToolTimeout>(reports[1]).kind, TimeoutKind::idle);
  EXPECT_EQ(as<ToolExecutionResult>(reports[2]).output.text, "2");
  EXPECT_EQ(as<ToolDenied>(reports[3]).reason, DenyReason::unknown_tool);
  const auto info = turn.info();
  EXPECT_EQ(info.calls_total, 4);
  EXPECT_EQ(info.calls_done, 4);
  EXPECT_EQ(info.calls_timed_out, 1);
}

TEST(Batch, reports_are_in_call_order_and_events_as_they_come) {
  ToolBench bench;
  const Latch first;
  const Latch second;
  bench.add({.name = "slow"}, [first](ToolContext&) {
    first.wait();
    return said("slow");
  });
  bench.add({.name = "slower"}, [second](ToolContext&) {
    second.wait();
    return said("slower");
  });
  bench.add({.name = "quick"}, [](ToolContext&) { return said("quick"); });
  auto turn = bench.turn();
  auto batch = std::async(std::launch::async, [&] {
    return bench.calls(turn, {"slower", "slow", "quick"});
  });
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::result) == 1; }));
  first.open();
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::result) == 2; }));
  second.open();
  const auto reports = batch.get();
  for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(reports[at].call.id, std::to_string(at));
  EXPECT_EQ(bench.results(), (std::vector<std::string>{"2", "1", "0"}));
}

TEST(Batch, a_call_that_changes_something_runs_alone_and_in_its_place) {
  ToolBench bench;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::mutex mutex;
  std::string order;
  const auto run = [&](ToolContext& now) {
    const int count = ++inside;
    if (now.call().tool == "w") {
      EXPECT_EQ(count, 1);
    }
    most = std::max(most.load(), count);
    {
      const std::lock_guard guard(mutex);
      order += now.call().tool;
    }
    std::this_thread::yield();
    --inside;
    return said("x");
  };
  bench.add({.name = "r"}, run);
  bench.add({.name = "w", .effect = Effect::local_write}, run);
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, {"r", "r", "w", "r", "w", "w", "r"});
  EXPECT_EQ(order, "rrwrwwr");
  EXPECT_EQ(reports[2].wave, 1U);
  EXPECT_EQ(reports[6].wave, 5U);
}

TEST(Batch, of_a_thousand_runs_no_more_than_it_may_at_once) {
  ToolBench bench;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  bench.add({.name = "t"}, [&](ToolContext&) {
    const int count = ++inside;
    int before = most;
    while (count > before && !most.compare_exchange_weak(before, count)) {
    }
    std::this_thread::yield();
    --inside;
    return said("x");
  });
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, std::vector<std::string>(1'000, "t"));
  EXPECT_EQ(reports.size(), 1'000U);
  EXPECT_TRUE(std::all_of(reports.begin(), reports.end(),
                          [](const CallReport& report) { return !is_error(report.outcome); }));
  EXPECT_LE(most, 8);
  EXPECT_LE(bench.executor().leaks().workers, 16U);
}

// github.com/anthropics/claude-code, issue 64346: one exit code ended all.
TEST(Batch, a_harmless_exit_code_spoils_nothing) {
  ToolBench bench;
  bench.add({.name = "t"}, [](ToolContext& now) {
    if (now.call().id != "13") return said("x");
    return ToolReply{.ok = false, .failure = FailureKind::exit_nonzero, .exit_code = 1};
  });
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, std::vector<std::string>(27, "t"));
  EXPECT_EQ(std::count_if(reports.begin(), reports.end(),
                          [](const CallReport& report) { return is_error(report.outcome); }),
            1);
}

TEST(Batch, siblings_are_called_off_only_if_somebody_wants_that) {
  for (const bool wanted : {false, true}) {
    ToolBench bench({.cancel_siblings_on_failure = wanted});
    const Latch latch;
    bench.add({.name = "bad"}, [](ToolContext&) { return ToolReply{.ok = false}; });
    bench.add({.name = "good"},
              [&, latch](ToolContext& now) { return ToolReply{.ok = latch.wait(now.stop())}; });
    auto turn = bench.turn();
    auto batch = std::async(std::launch::async, [&] { return bench.calls(turn, {"good", "bad"}); });
    ASSERT_TRUE(eventually([&] { return bench.count(Kind::result) >= 1; }));
    if (!wanted) latch.open();
    EXPECT_EQ(name_of(batch.get()[0].outcome), wanted ? "cancelled" : "result");
  }
}

TEST(Batch, waiting_for_ones_turn_costs_nothing_of_ones_time) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "long", .effect = Effect::local_write, .deadline = {.idle = 0ms}},
            [latch](ToolContext&) {
              latch.wait();
              return said("x");
            });
  bench.add({.name = "w", .effect = Effect::local_write},
            [](ToolContext& now) { return said(std::to_string(now.remaining()->count())); });
  auto first = bench.turn();
  auto second = bench.turn();
  auto holds = bench.begin(first, "long");
  latch.await();
  auto waits = bench.begin(second, "w");
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::queued) == 1; }));
  bench.advance(300s);
  EXPECT_EQ(waits.wait_for(20ms), std::future_status::timeout);
  latch.open();
  const auto report = bench.advance_until(waits, 1ms);
  EXPECT_EQ(as<ToolExecutionResult>(report).output.text, "120000");
  EXPECT_GE(report.queued, 300s);
  (void)holds.get();
}

TEST(Batch, waiting_too_long_for_ones_turn_is_a_timeout_without_effects) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  std::atomic<int> invoked{0};
  bench.add({.name = "long", .effect = Effect::local_write, .deadline = {.idle = 0ms}},
            [latch](ToolContext&) {
              latch.wait();
              return said("x");
            });
  bench.add({.name = "w", .effect = Effect::irreversible}, [&](ToolContext&) {
    ++invoked;
    return said("x");
  });
  auto first = bench.turn();
  auto second = bench.turn();
  auto holds = bench.begin(first, "long");
  latch.await();
  auto waits = bench.begin(second, "w");
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::queued) == 1; }));
  bench.advance(600s);
  const auto report = waits.get();
  const auto& timeout = as<ToolTimeout>(report);
  EXPECT_EQ(timeout.kind, TimeoutKind::queue);
  EXPECT_EQ(timeout.effects, EffectState::none);
  EXPECT_EQ(timeout.retry, RetryAdvice::safe);
  EXPECT_EQ(invoked, 0);
  EXPECT_NE(render_for_model(report).find("was not started"), std::string::npos);
  latch.open();
  (void)holds.get();
}

TEST(Batch, files_are_used_by_one_at_a_time_and_others_are_no_concern) {
  const test::TempDir dir;
  ToolBench bench;
  const Latch latch;
  std::atomic<int> inside{0};
  const auto path = [&](std::string_view arguments) {
    return std::vector<ResourceKey>{
        {(dir.path() / std::string(arguments.substr(6, 1))).string(), true}};
  };
  bench.add({.name = "edit",
             .concurrency = Concurrency::by_resource,
             .effect = Effect::local_write,
             .resources = path},
            [&, latch](ToolContext&) {
              ++inside;
              latch.wait();
              return said("x");
            });
  auto turn = bench.turn();
  const std::vector<ToolCall> calls{
      {"1", "edit", R"({"p":"a"})"}, {"2", "edit", R"({"p":"a"})"}, {"3", "edit", R"({"p":"b"})"}};
  auto batch =
      std::async(std::launch::async, [&] { return bench.executor().execute_batch(turn, calls); });
  latch.await(2);
  EXPECT_TRUE(eventually([&] { return bench.count(Kind::queued) == 1; }));
  EXPECT_EQ(inside, 2);
  latch.open();
  EXPECT_EQ(batch.get().size(), 3U);
}

TEST(Batch, workspaces_are_apart_and_shared_ones_keep_their_order) {
  const test::TempDir dir;
  const auto run = [&](const std::string& one, const std::string& two) {
    ToolBench first({.workspace = one});
    ToolBench second({.workspace = two});
    const Latch latch;
    std::atomic<bool> got_in{false};
    const ToolSpec alone{.name = "w", .effect = Effect::local_write};
    first.add(alone, [latch](ToolContext&) {
      latch.wait();
      return said("x");
    });
    second.add(alone, [&](ToolContext&) {
      got_in = true;
      return said("x");
    });
    auto turn_one = first.turn();
    auto turn_two = second.turn();
    auto holds = first.begin(turn_one, "w");
    latch.await();
    auto other = second.begin(turn_two, "w");
    if (one == two) {
      EXPECT_TRUE(eventually([&] { return second.count(Kind::queued) == 1; }));
      EXPECT_FALSE(got_in);
    } else {
      EXPECT_EQ(name_of(other.get().outcome), "result");
    }
    latch.open();
    (void)holds.get();
    if (other.valid()) (void)other.get();
  };
  const auto a = (dir.path() / "a").string();
  run(a, (dir.path() / "b").string());
  run(a, a);
}

// -- what hangs

TEST(Batch, a_hanging_call_that_may_still_write_keeps_others_from_writing) {
  for (const bool gated : {false, true}) {
    ToolBench bench;
    const Latch latch;
    bench.add({.name = "hang",
               .effect = Effect::local_write,
               .gated = gated,
               .deadline = {.idle = 20ms},
               .retry_on_timeout = true},
              [latch](ToolContext&) {
                latch.wait();
                return said("late");
              });
    bench.add({.name = "w", .effect = Effect::local_write}, [](ToolContext&) { return said("x"); });
    bench.add({.name = "r"}, [](ToolContext&) { return said("x"); });
    bench.options.cancel_grace = 50ms;
    auto turn = bench.turn();
    const auto reports = bench.calls(turn, {"hang", "w", "r"});
    EXPECT_TRUE(as<ToolTimeout>(reports[0]).still_running);
    if (gated) {
      EXPECT_EQ(name_of(reports[1].outcome), "result") << "nothing of it can come late";
    } else {
      EXPECT_EQ(as<ToolDenied>(reports[1]).reason, DenyReason::quarantined);
    }
    EXPECT_EQ(name_of(reports[2].outcome), "result") << "reading harms nobody";
    latch.open();
    ASSERT_TRUE(eventually([&] { return bench.executor().leaks().abandoned == 0; }));
    EXPECT_EQ(name_of(bench.calls(turn, {"w"})[0].outcome), "result");
  }
}

TEST(Batch, the_next_tool_runs_although_the_one_before_never_returns) {
  ToolBench bench({.cancel_grace = 20ms});
  const Latch latch;
  bench.add({.name = "hang", .deadline = {.idle = 20ms}}, [latch](ToolContext&) {
    latch.wait();
    return said("late");
  });
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  EXPECT_EQ(name_of(bench.call("hang").outcome), "timeout");
  EXPECT_EQ(name_of(bench.call("t").outcome), "result");
  latch.open();
}

TEST(Batch, two_that_hang_put_their_tool_in_quarantine_and_no_other) {
  ToolBench bench({.cancel_grace = 20ms});
  const Latch latch;
  bench.add({.name = "hang", .deadline = {.idle = 20ms}}, [latch](ToolContext&) {
    latch.wait();
    return said("late");
  });
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  (void)bench.call("hang");
  (void)bench.call("hang");
  EXPECT_EQ(as<ToolDenied>(bench.call("hang")).reason, DenyReason::quarantined);
  EXPECT_EQ(bench.executor().leaks().quarantined, std::vector<std::string>{"hang"});
  EXPECT_EQ(name_of(bench.call("t").outcome), "result");
  bench.executor().reset_quarantine("hang");
  EXPECT_EQ(name_of(bench.call("hang").outcome), "timeout");
  latch.open();
  ASSERT_TRUE(eventually([&] { return bench.executor().leaks().abandoned == 0; }));
  EXPECT_EQ(name_of(bench.call("hang").outcome), "result") << "they are back";
}

TEST(Batch, when_all_workers_hang_the_next_call_is_refused_at_once) {
  ToolBench bench({.workers_max = 16, .quarantine_after = 100, .cancel_grace = 10ms});
  const Latch latch;
  bench.add({.name = "hang", .deadline = {.idle = 10ms}}, [latch](ToolContext&) {
    latch.wait();
    return said("late");
  });
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  auto turn = bench.turn();
  (void)bench.calls(turn, std::vector<std::string>(8, "hang"));
  auto next = bench.turn();
  (void)bench.calls(next, std::vector<std::string>(8, "hang"));
  ASSERT_EQ(bench.executor().leaks().abandoned, 16U);
  EXPECT_EQ(bench.executor().leaks().slots_free, 0U);
  EXPECT_EQ(as<ToolDenied>(bench.call("t")).reason, DenyReason::saturated);
  latch.open();
  ASSERT_TRUE(eventually([&] { return bench.executor().leaks().slots_free > 0; }));
  EXPECT_EQ(name_of(bench.call("t").outcome), "result");
}

TEST(Batch, thousands_of_timeouts_do_not_make_threads) {
  ToolBench bench;
  bench.stop_the_clock();
  bench.options.timeouts_in_a_row_max = 1'000'000;
  bench.add({.name = "t", .effect = Effect::none, .deadline = {.idle = 1ms}},
            [&](ToolContext& now) {
              bench.clock.advance(1ms);
              bench.executor().tick();
              const Latch latch;
              return ToolReply{.ok = latch.wait(now.stop())};
            });
  auto turn = bench.turn();
  (void)bench.executor();
  for (int at = 0; at < 10'000; ++at) {
    ASSERT_EQ(name_of(bench.executor().execute(turn, {"1", "t", "{}"}).outcome), "timeout");
  }
  EXPECT_LE(bench.executor().leaks().workers, 16U) << "one may be on its way back";
  EXPECT_EQ(bench.executor().leaks().abandoned, 0U);
}

TEST(Batch, an_executor_goes_although_its_threads_do_not) {
  const Latch latch;
  std::atomic<bool> back{false};
  {
    ToolBench bench({.cancel_grace = 10ms, .shutdown_grace = 50ms});
    bench.add({.name = "hang", .deadline = {.idle = 10ms}}, [&back, latch](ToolContext& now) {
      latch.wait();
      now.progress(1);
      now.partial("x");
      now.heartbeat("still here");
      EXPECT_TRUE(now.should_stop());
      EXPECT_EQ(now.remaining(), Millis{0});
      EXPECT_EQ(now.writes().commit([] { ADD_FAILURE() << "a late effect"; }),
                CommitResult::fenced);
      const auto pause = now.pause(PauseReason::rate_limited);
      back = true;
      return said("late");
    });
    (void)bench.call("hang");
  }
  latch.open();
  EXPECT_TRUE(eventually([&] { return back.load(); }));
}

#ifndef WATCHDOG_SANITIZE_THREAD  // which cannot follow a thread made after a fork
TEST(Batch, a_process_ends_cleanly_with_a_call_that_hangs) {
  const auto child = fork();
  if (child == 0) {
    {
      ToolBench bench({.cancel_grace = 10ms, .shutdown_grace = 50ms});
      bench.add({.name = "hang", .deadline = {.idle = 10ms}}, [](ToolContext&) {
        while (true) pause();
        return said("never");
      });
      (void)bench.call("hang");
    }
    std::quick_exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Batch, without_threads_a_call_is_denied_and_nothing_thrown) {
  // In a process of its own and as nobody: the limit does not hold for root.
  const auto child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    if (setuid(65534) != 0 && getuid() == 0) _exit(77);
    setrlimit(RLIMIT_NPROC, &none);
    ToolExecutor executor({.tools = [] {
      auto tools = std::make_shared<ToolRegistry>();
      (void)tools->add(make_tool({.name = "t"}, [](ToolContext&) { return said("x"); }));
      return tools;
    }()});
    TurnRegistry turns;
    auto turn = turns.begin({});
    const auto report = executor.execute(*turn, {"1", "t", "{}"});
    const auto* denied = std::get_if<ToolDenied>(&report.outcome);
    _exit(denied != nullptr && denied->reason == DenyReason::saturated ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this process may not become another user";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST(Batch, goes_on_one_by_one_where_the_options_allow_none_at_once) {
  ToolBench bench({.parallel_max = 0, .workers_max = 0});
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  auto turn = bench.turn();
  for (const auto& report : bench.calls(turn, {"t", "t"})) {
    EXPECT_EQ(name_of(report.outcome), "result");
  }
}

TEST(Batch, a_call_does_not_wait_for_one_that_it_belongs_to) {
  for (const auto outer : {Effect::none, Effect::external_write}) {
    ToolBench bench({.queue_max = 20s});
    const Latch inside;
    bench.add({.name = "write", .effect = Effect::local_write},
              [](ToolContext&) { return said("x"); });
    bench.add({.name = "agent", .effect = outer}, [&, inside](ToolContext& now) {
      inside.wait();
      auto child = bench.turns().begin_in(now.child_scope(), {}, now.turn());
      const auto report = bench.executor().execute(*child, {"i", "write", "{}"});
      return said(std::string(name_of(report.outcome)));
    });
    auto turn = bench.turn();
    auto other = bench.turn();
    auto batch = std::async(std::launch::async, [&] {
      return bench.calls(turn, {"agent", "agent"});
    });
    inside.await(outer == Effect::none ? 2 : 1);
    // It waits for an agent, so no agent may have to wait for it.
    auto writer = bench.begin(other, "write");
    ASSERT_TRUE(eventually([&] { return bench.count(Kind::queued) == 1; }));
    inside.open();
    for (const auto& report : batch.get()) {
      EXPECT_EQ(as<ToolExecutionResult>(report).output.text, "result");
    }
    EXPECT_EQ(name_of(writer.get().outcome), "result");
  }
}

TEST(Batch, siblings_that_have_not_begun_are_called_off_as_well) {
  ToolBench bench({.parallel_max = 1, .cancel_siblings_on_failure = true});
  std::atomic<int> invoked{0};
  bench.add({.name = "bad"}, [](ToolContext&) { return ToolReply{.ok = false}; });
  bench.add({.name = "good"}, [&](ToolContext&) {
    ++invoked;
    return said("x");
  });
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, {"bad", "good", "good"});
  EXPECT_FALSE(as<ToolCancelled>(reports[1]).started);
  EXPECT_FALSE(as<ToolCancelled>(reports[2]).started);
  EXPECT_EQ(invoked, 0);
  EXPECT_NE(render_for_model(reports[1]).find("another call of the same answer went wrong"),
            std::string::npos);
}

TEST(Batch, a_tool_that_cannot_say_what_it_uses_is_denied_alone) {
  ToolBench bench;
  bench.add({.name = "t",
             .concurrency = Concurrency::by_resource,
             .resources = [](auto) -> std::vector<ResourceKey> { throw 42; }},
            [](ToolContext&) { return said("x"); });
  bench.add({.name = "other"}, [](ToolContext&) { return said("x"); });
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, {"t", "other"});
  EXPECT_EQ(as<ToolDenied>(reports[0]).reason, DenyReason::invalid_arguments);
  EXPECT_EQ(name_of(reports[1].outcome), "result");
}

TEST(Batch, waiting_for_ones_turn_is_not_charged_with_a_stall_either) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "long", .effect = Effect::local_write, .deadline = {.idle = 0ms}},
            [latch](ToolContext&) {
              latch.wait();
              return said("x");
            });
  bench.add({.name = "w", .effect = Effect::local_write}, [](ToolContext&) { return said("x"); });
  bench.options.look_longest = 1s;
  auto first = bench.turn();
  auto second = bench.turn();
  auto holds = bench.begin(first, "long");
  latch.await();
  auto waits = bench.begin(second, "w");
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::queued) == 1; }));
  bench.advance(1h);  // longer than it may wait, but nobody was awake
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::host_stall) >= 2; }));
  latch.open();
  EXPECT_EQ(name_of(waits.get().outcome), "result");
  (void)holds.get();
}

}  // namespace
}  // namespace watchdog
