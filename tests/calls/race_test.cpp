// Many calls whose results and deadlines meet.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "support/scenario.h"
#include "support/tool_bench.h"
#include "watchdog/executor.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::ToolBench;
using Kind = ToolEvent::Kind;

TEST(Race, each_call_has_one_outcome_and_nothing_is_written_after_it) {
  const auto seed = test::random_seed();
  constexpr int batch_size = 8;
  constexpr int callers = 4;
  const int rounds = test::repetitions(100'000) / (batch_size * callers);

  ToolBench bench({.workers_max = 64,
                   .quarantine_after = 1'000'000,
                   .timeouts_in_a_row_max = 1'000'000,
                   .cancel_grace = 0ms});
  std::atomic<std::int64_t> effects{0};  // that happened
  std::atomic<std::int64_t> claimed{0};  // of calls whose outcome says so
  std::atomic<int> invoked{0};
  bench.add({.name = "t",
             .concurrency = Concurrency::parallel,
             .effect = Effect::local_write,
             .gated = true,
             .deadline = {.idle = 1ms},
             .retry_on_timeout = true},
            [&](ToolContext& now) {
              ++invoked;
              // About as long as its deadline.
              const auto until =
                  std::chrono::steady_clock::now() +
                  std::chrono::microseconds{std::stoi(now.call().arguments.substr(5))};
              while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
              const auto result = now.writes().commit([&] { ++effects; });
              return ToolReply{.ok = result == CommitResult::committed, .text = "done"};
            });
  std::atomic<std::int64_t> outcomes{0};
  (void)bench.executor();
  (void)bench.turns();
  std::vector<std::thread> threads;
  for (unsigned caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      std::mt19937 random(seed + caller);
      for (int round = 0; round < rounds; ++round) {
        auto turn = bench.turn();
        std::vector<ToolCall> calls;
        for (int at = 0; at < batch_size; ++at) {
          calls.push_back(
              {std::to_string(at), "t", R"({"u":)" + std::to_string(random() % 2'000) + "}"});
        }
        std::thread canceller;
        if (round % 4 == 0) {
          canceller = std::thread([&] { turn.scope().cancel({}); });
        }
        for (const auto& report : bench.executor().execute_batch(turn, calls)) {
          ++outcomes;
          const auto state = std::holds_alternative<ToolExecutionResult>(report.outcome)
                                 ? EffectState::complete
                             : std::holds_alternative<ToolTimeout>(report.outcome)
                                 ? std::get<ToolTimeout>(report.outcome).effects
                             : std::holds_alternative<ToolCancelled>(report.outcome)
                                 ? std::get<ToolCancelled>(report.outcome).effects
                                 : EffectState::none;
          ASSERT_NE(state, EffectState::partial) << to_json(report);
          ASSERT_NE(state, EffectState::unknown) << to_json(report);
          if (state == EffectState::complete) ++claimed;
        }
        if (canceller.joinable()) canceller.join();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(outcomes, std::int64_t{rounds} * batch_size * callers);
  EXPECT_TRUE(test::eventually([&] { return bench.executor().leaks().abandoned == 0; }));
  EXPECT_EQ(effects, claimed) << "an effect that no outcome tells of came late";
  EXPECT_EQ(bench.count(Kind::result), outcomes) << "one each";
  const auto leaks = bench.executor().leaks();
  EXPECT_EQ(leaks.abandoned_total, leaks.reclaimed_total);
  RecordProperty("calls", std::to_string(outcomes));
}

}  // namespace
}  // namespace watchdog
