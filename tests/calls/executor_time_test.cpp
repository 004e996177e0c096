// The time that counts against a call, and the time that does not.

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "support/tool_bench.h"
#include "watchdog/executor.h"

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

TEST(ExecutorTime, a_machine_that_stood_still_is_not_held_against_a_call) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "t", .deadline = {.soft = 1s}}, [latch](ToolContext& now) {
    return ToolReply{.ok = latch.wait(now.stop()), .text = "x"};
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  latch.await();
  bench.advance(1s);
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::slow) == 1; })) << "it has looked";
  bench.advance(124s);  // it slept 5 s longer than it meant to
  EXPECT_TRUE(eventually([&] { return bench.count(Kind::host_stall) == 1; }));
  for (const auto& event : bench.events()) {
    if (event.kind == Kind::host_stall) {
      EXPECT_EQ(event.elapsed, 5s);
    }
  }
  EXPECT_LT(as<ToolTimeout>(bench.advance_until(running)).elapsed, 124s) << "of its own time";
}

TEST(ExecutorTime, all_of_a_stall_is_left_out_also_when_somebody_else_rings_first) {
  ToolBench bench;
  bench.stop_the_clock();
  bench.options.look_longest = 1s;
  bench.options.progress_every = 1s;
  const Latch latch;
  bench.add({.name = "t"}, [latch](ToolContext& now) {
    return ToolReply{.ok = latch.wait(now.stop()), .text = "x"};
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  latch.await();
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::start) == 1; }));
  bench.advance(1s);
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::progress) == 1; }));
  bench.advance(300s);  // the ring of tick comes before the waiting thread's own look
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::host_stall) == 1; }));
  for (const auto& event : bench.events()) {
    if (event.kind == Kind::host_stall) {
      EXPECT_GE(event.elapsed, 298s);
    }
  }
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout) << "it had a second";
  latch.open();
  EXPECT_EQ(text_of(running.get()), "x");
}

TEST(ExecutorTime, a_slow_tool_is_called_slow_once_and_left_alone) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "t", .deadline = {.soft = 10s}}, [latch](ToolContext& now) {
    (void)latch.wait(now.stop());
    return said("x");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  latch.await();
  EXPECT_TRUE(eventually([&] {
    bench.advance(1s);
    return bench.count(Kind::slow) == 1;
  }));
  bench.advance(1s);
  latch.open();
  (void)bench.advance_until(running, 1ms);
  EXPECT_EQ(bench.count(Kind::slow), 1);
}

TEST(ExecutorTime, progress_is_reported_every_five_seconds_of_a_long_call) {
  ToolBench bench;
  bench.stop_the_clock();
  bench.options.progress_every = 5s;
  const Latch latch;
  bench.add({.name = "t"}, [latch](ToolContext& now) {
    for (int at = 1; at <= 1'000; ++at) now.progress(at);
    (void)latch.wait(now.stop());
    return said("x");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "t");
  latch.await();
  for (int published = 1; published <= 4; ++published) {
    bench.advance(4'999ms);
    EXPECT_EQ(running.wait_for(5ms), std::future_status::timeout);
    EXPECT_EQ(bench.count(Kind::progress), published - 1);
    bench.advance(1ms);
    EXPECT_TRUE(eventually([&] { return bench.count(Kind::progress) == published; }));
  }
  latch.open();
  EXPECT_EQ(bench.advance_until(running, 1ms).progress_accepted, 1'000);
}

TEST(ExecutorTime, the_wall_clock_does_not_matter) {
  // The executor computes deadlines from Clock::since_boot alone. The wall clock may jump, as it
  // does here with each call of `wall`.
  class Jumping final : public Clock {
   public:
    Millis since_boot() const noexcept override { return system_clock().since_boot(); }
    WallTime wall() const noexcept override {
      return WallTime{Millis{jumps_++ % 2 == 0 ? 0 : 4'000'000'000'000}};
    }
    std::string boot_id() const override { return "jumping"; }

   private:
    mutable std::atomic<int> jumps_{0};
  };
  static Jumping clock;
  ToolBench bench({.clock = &clock});
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  for (int at = 0; at < 20; ++at) EXPECT_EQ(text_of(bench.call("t")), "x");
}

TEST(ExecutorTime, with_nothing_left_of_an_enforced_budget_nothing_is_started) {
  ToolBench bench;
  bench.stop_the_clock();
  std::atomic<int> invoked{0};
  bench.add({.name = "t"}, [&](ToolContext&) {
    ++invoked;
    return said("x");
  });
  const auto budget = std::make_shared<ExecutionBudget>(bench.clock, BudgetLimits{.duration = 10s},
                                                        BudgetThresholds{.enforce_time = true});
  auto turn = bench.turn({.budget = budget});
  bench.clock.advance(10s);
  const auto report = bench.executor().execute(turn, {"1", "t", "{}"});
  EXPECT_EQ(as<ToolDenied>(report).reason, DenyReason::deadline);
  EXPECT_NE(render_for_model(report).find("the budget's time is used up"), std::string::npos);
  EXPECT_EQ(invoked, 0);
  EXPECT_EQ(bench.executor().leaks().workers, 0U) << "no thread was made for it";
}

TEST(ExecutorTime, a_call_gets_half_of_a_nearly_used_budget_and_all_its_time_of_advice) {
  for (const bool enforced : {true, false}) {
    ToolBench bench;
    bench.stop_the_clock();
    std::atomic<std::int64_t> left{0};
    bench.add({.name = "t"}, [&](ToolContext& now) {
      left = now.remaining().value_or(Millis{-1}).count();
      return said("x");
    });
    const auto budget = std::make_shared<ExecutionBudget>(
        bench.clock, BudgetLimits{.duration = 100s}, BudgetThresholds{.enforce_time = enforced});
    auto turn = bench.turn({.budget = budget});
    bench.clock.advance(99s);
    (void)bench.executor().execute(turn, {"1", "t", "{}"});
    EXPECT_EQ(left, enforced ? 500 : 120'000);
  }
}

TEST(ExecutorTime, no_call_outlives_the_deadline_of_its_turn) {
  ToolBench bench;
  bench.stop_the_clock();
  std::atomic<std::int64_t> left{0};
  bench.add({.name = "t"}, [&](ToolContext& now) {
    left = now.remaining()->count();
    return said("x");
  });
  auto turn = bench.turn({.deadline = 60s});
  bench.clock.advance(50s);
  (void)bench.executor().execute(turn, {"1", "t", "{}"});
  EXPECT_EQ(left, 10'000);
  bench.clock.advance(10s);
  EXPECT_EQ(as<ToolDenied>(bench.executor().execute(turn, {"2", "t", "{}"})).reason,
            DenyReason::deadline);
}

TEST(ExecutorTime, neither_deadline_nor_budget_count_while_a_tool_waits_for_somebody) {
  ToolBench bench;
  bench.stop_the_clock();
  const Latch latch;
  const Latch left;
  bench.add({.name = "t"}, [=](ToolContext& now) {
    const auto limited = now.pause(PauseReason::rate_limited);
    {
      const auto asked = now.pause(PauseReason::awaiting_input);
      latch.wait();
    }
    left.wait();
    return said("x");
  });
  const auto budget = std::make_shared<ExecutionBudget>(bench.clock, BudgetLimits{.duration = 1h});
  auto turn = bench.turn({.budget = budget});
  auto running = bench.begin(turn, "t");
  latch.await();
  bench.advance(10h);
  latch.open();
  left.await();
  bench.advance(10h);
  EXPECT_EQ(running.wait_for(20ms), std::future_status::timeout);
  EXPECT_TRUE(turn.info().running[0].paused);
  left.open();
  const auto report = running.get();
  EXPECT_EQ(text_of(report), "x");
  EXPECT_EQ(report.paused, 20h);
  EXPECT_EQ(budget->elapsed_seconds(), 0);
  bench.clock.advance(5s);
  EXPECT_EQ(budget->elapsed_seconds(), 5) << "its clock runs again";
}

TEST(ExecutorTime, a_call_abandoned_while_paused_no_longer_pauses_the_budget) {
  ToolBench bench({.cancel_grace = 0ms});
  bench.stop_the_clock();
  const Latch latch;
  bench.add({.name = "t"}, [=](ToolContext& now) {
    const auto limited = now.pause(PauseReason::rate_limited);
    latch.wait();
    return said("x");
  });
  const auto budget = std::make_shared<ExecutionBudget>(bench.clock, BudgetLimits{.duration = 1h});
  auto turn = bench.turn({.budget = budget});
  auto running = bench.begin(turn, "t");
  latch.await();
  turn.scope().cancel({});
  EXPECT_TRUE(as<ToolCancelled>(running.get()).still_running);
  bench.clock.advance(5s);
  EXPECT_EQ(budget->elapsed_seconds(), 5);
  latch.open();
  EXPECT_TRUE(eventually([&] { return bench.executor().leaks().abandoned == 0; }));
  bench.clock.advance(5s);
  EXPECT_EQ(budget->elapsed_seconds(), 10) << "once is enough";
}

}  // namespace
}  // namespace watchdog
