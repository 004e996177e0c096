// Mistakes that others made in this field, one test each: what they are, and that they are not
// ours.

#include <gtest/gtest.h>

#include <random>

#include "codec/facts.h"
#include "observer/observer.h"
#include "store/transition_reader.h"
#include "support/agent.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using test::Agent;
using test::long_text;
using test::ManualClock;
using test::TempDir;
using namespace std::chrono_literals;

TEST(Trap, equality_of_arguments_only_kills_polling_and_paging) {
  Agent polling;
  for (int i = 0; i < 60; ++i) {
    polling.call("status", R"({"job":7})", "done: " + std::to_string(i) + " of 60");
  }
  EXPECT_FALSE(polling.ever_confirmed()) << polling.story();
  Agent paging;
  for (int i = 0; i < 60; ++i) paging.call("next", "{}", long_text("page " + std::to_string(i)));
  EXPECT_FALSE(paging.ever(HealthKind::suspect)) << paging.story();
}

TEST(Trap, results_that_are_equal_by_exit_code_only) {
  Agent agent;
  for (int i = 0; i < 30; ++i) {
    agent.call("shell", R"({"command":"make"})", "exit code 0\n" + std::to_string(i) + " warnings");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(Trap, text_of_thoughts_in_the_equality) {
  Agent agent;
  for (int i = 0; i < 5; ++i) {
    agent.message("Thought number " + std::to_string(i) + ", another one each time", "thought");
    agent.call("shell", R"({"command":"make"})", "failed");
  }
  EXPECT_EQ(agent.health(), HealthKind::looping) << "a new thought does not make the call new";
}

TEST(Trap, order_of_json_members) {
  Agent agent;
  for (int i = 0; i < 5; ++i) {
    agent.call("shell", i % 2 == 0 ? R"({"a":1,"b":2})" : R"({ "b": 2, "a": 1 })", "same");
  }
  EXPECT_EQ(agent.health(), HealthKind::looping);
  EXPECT_EQ(name_of(agent.pattern()), "R1");
}

TEST(Trap, thresholds_that_cannot_be_reached_in_their_window) {
  const auto refusal = check(PolicyPatch{.repeated_of_20 = 20});
  ASSERT_FALSE(refusal);
  EXPECT_EQ(refusal.error().field, "repeatedOf20");
  Policy upside_down;
  upside_down.patterns[static_cast<std::size_t>(Pattern::same_call)] = {6, 5};
  const auto other = check(upside_down);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().field, "patterns.R1.suspect");
  // And all that is allowed is reached: each pattern's greatest sensible count.
  EXPECT_TRUE(check(Policy{}));
}

TEST(Trap, counters_that_never_decay) {
  Agent agent;
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    agent.call("read", "a", "b");  // once in a while the same
    for (int i = 0; i < 9; ++i) agent.call("read", std::to_string(random()), "new");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(Trap, replays_counted_twice) {
  const TempDir dir;
  const ManualClock clock;
  auto store = Store::open({.database = dir / "w.db", .clock = &clock});
  ASSERT_TRUE(store);
  std::vector<Report> reports;
  for (int i = 0; i < 2; ++i) {
    const auto id = std::to_string(i);
    reports.push_back(
        {.kind = ReportKind::tool_call, .name = "read", .content = "a", .event_id = "call " + id});
    reports.push_back({.kind = ReportKind::tool_result,
                       .name = "read",
                       .content = "b",
                       .event_id = "result " + id});
  }
  for (int times = 0; times < 10; ++times) {
    Batch batch{.session = "s", .reports = reports};
    ASSERT_TRUE(store->append({&batch, 1}));
  }
  const auto row = store->reader().session("s");
  const auto judged = store->reader().fold(*row);
  EXPECT_EQ(judged->health.kind, HealthKind::progressing);
  EXPECT_EQ(judged->history.repetition->same_result.count, 2);
}

TEST(Trap, parallel_fan_out_counted_as_repeats) {
  Agent agent;
  for (int i = 0; i < 12; ++i) agent.begin("ping", R"({"host":"a"})", "call " + std::to_string(i));
  for (int i = 0; i < 12; ++i) agent.done("ping", "alive", "call " + std::to_string(i));
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
  EXPECT_EQ(agent.judged.history.repetition->same_result.count, 1);
  // But the same fan-out again and again is a loop.
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) {
      agent.begin("ping", R"({"host":)" + std::to_string(i) + "}", std::to_string(i));
    }
    for (int i = 2; i >= 0; --i) agent.done("ping", "alive", std::to_string(i));
  }
  EXPECT_EQ(agent.health(), HealthKind::looping);
}

TEST(Trap, truncated_stubs_with_unique_paths) {
  Agent agent;
  for (int i = 0; i < 5; ++i) {
    agent.begin("make", "{}");
    // Where the source cut the output itself, its own digest of the whole shows it.
    agent.say({.kind = ReportKind::tool_result,
               .name = "make",
               .content = "Output too long, see /tmp/out-" + std::to_string(i),
               .hash = "c0ffee"});
  }
  EXPECT_EQ(agent.health(), HealthKind::looping);
  // And what we cut ourselves was compared before.
  Agent cut;
  const std::string same(5'000, 'x');
  for (int i = 0; i < 30; ++i) cut.call("make", "{}", same + std::to_string(i));
  EXPECT_FALSE(cut.ever(HealthKind::suspect)) << "they differ beyond what is kept";
}

TEST(Trap, digits_that_are_stripped) {
  Agent agent;
  for (int left = 59; left > 0; --left) {
    agent.fail("run_tests", "{}", std::to_string(left) + " failed");
    agent.call("edit", R"({"line":)" + std::to_string(left) + "}", "ok");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(Trap, heartbeat_that_resets_the_stall_counter) {
  Agent agent;
  agent.state(R"({"n":1})");
  for (int i = 0; i < 5; ++i) agent.loop().helper().helper();
  EXPECT_EQ(agent.health(), HealthKind::stuck);
  Agent looping;
  for (int i = 0; i < 5; ++i) looping.call("read", "a", "b").loop().helper();
  EXPECT_EQ(looping.health(), HealthKind::looping);
}

TEST(Trap, lists_of_tool_names) {
  const auto story = [](const std::string& tool) {
    Agent agent;
    for (int i = 0; i < 5; ++i) agent.call(tool, "{}", "same");
    return agent.confirmed_at;
  };
  for (const char* tool : {"bash", "sleep", "wait_for", "get_status", "", "finish", "\xff"}) {
    EXPECT_EQ(story(tool), story("x")) << tool;
  }
}

TEST(Trap, detectors_that_are_off_or_warn_for_ever) {
  Agent agent;  // as it comes
  for (int i = 0; i < 50; ++i) agent.call("read", "a", "b");
  int confirmations = 0;
  for (const auto& change : agent.changes) {
    if (change.health.kind == HealthKind::looping) ++confirmations;
  }
  EXPECT_EQ(confirmations, 1) << "a transition, and one: " << agent.story();
}

TEST(Trap, silent_stop_with_exit_code_0) {
  Agent agent;
  for (int i = 0; i < 5; ++i) agent.pass(10s).helper();
  agent.kind(ReportKind::exited);  // its process is gone, and it said no end
  agent.pass(1min);
  EXPECT_EQ(agent.health(), HealthKind::dead) << agent.story();
}

TEST(Trap, check_that_blocks_the_agent) {
  Agent agent;  // nobody answers, ever: what it says is taken and judged all the same
  for (int i = 0; i < 3; ++i) agent.call("read", "a", "b");
  ASSERT_EQ(agent.health(), HealthKind::suspect);
  agent.call("read", "c", "d").call("write", "e", "f").state(R"({"n":1})");
  EXPECT_EQ(agent.health(), HealthKind::progressing);
}

TEST(Trap, evaluation_period_equal_to_the_bound) {
  Agent agent;
  for (int i = 0; i < 6; ++i) agent.pass(10s).helper();
  const auto bound = silence_bound(agent.judged.history, *agent.judged.policy);
  agent.pass(bound - 1ms);
  EXPECT_NE(agent.health(), HealthKind::silent);
  const auto at = agent.now + 1ms;
  agent.pass(1h);  // however late it is looked
  ASSERT_EQ(agent.health(), HealthKind::silent);
  EXPECT_EQ(agent.changes.back().tick, at) << "and not at twice the bound";
}

TEST(Trap, long_intervals_that_begin_again_at_a_restart) {
  Agent agent;
  agent.state(R"({"n":1})").helper();
  const auto slow_at = pace_now(agent.judged.history, *agent.judged.policy).slow_at;
  agent.pass((slow_at - agent.now) / 2);
  Case restored;
  restored.session = 1;
  ASSERT_TRUE(read_snapshot(restored, snapshot_of(agent.judged)));
  EXPECT_EQ(pace_now(restored.history, *restored.policy).slow_at, slow_at);
  EXPECT_EQ(restored.health.valid_until, agent.judged.health.valid_until);
}

/// Two monitors and a restart, over a real file.
class TrapOfMonitors : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  Store open() {
    auto store = Store::open({.database = dir / "w.db", .clock = &clock});
    EXPECT_TRUE(store);
    return std::move(*store);
  }
  static std::vector<TransitionRow> reported(Store& store) {
    const auto row = store.reader().session("s");
    return *TransitionReader(store.reader()).of(row->key, 0, 1'000);
  }
};

TEST_F(TrapOfMonitors, alerts_marked_before_they_are_sent) {
  Store store = open();
  auto observer = std::move(*Observer::start(store, {}));
  (void)test::say(store, "s", std::vector<Report>(1, test::change()));
  ASSERT_TRUE(observer->look());
  const auto before = reported(store);
  // Whatever reads transitions keeps its own place: after a restart none is repeated, none is lost.
  observer.reset();
  observer = std::move(*Observer::start(store, {}));
  ASSERT_TRUE(observer->look());
  EXPECT_EQ(reported(store).size(), before.size());
}

TEST_F(TrapOfMonitors, two_writers_of_the_status) {
  Store store = open();
  const auto first = Observer::start(store, {});
  ASSERT_TRUE(first);
  Store other = open();
  const auto second = Observer::start(other, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST(Trap, wall_clock_anywhere) {
  const auto story = [](bool jumping) {
    Agent agent;
    std::mt19937 random(5);
    std::string text;
    for (int i = 0; i < 200; ++i) {
      Report report{.kind = i % 3 == 0 ? ReportKind::state_change : ReportKind::message,
                    .name = "x",
                    .content = std::to_string(i / 7)};
      if (jumping) {  // hours both ways, and from the future
        report.ts_ms = static_cast<std::int64_t>(random()) * 1'000'000;
        report.at = WallTime{Millis{static_cast<std::int64_t>(random()) - 2'000'000'000}};
      } else {
        (void)random();
        (void)random();
      }
      agent.pass(Millis{i * 100}).say(std::move(report));
      text += name_of(agent.health());
    }
    return text;
  };
  EXPECT_EQ(story(false), story(true));
}

}  // namespace
}  // namespace watchdog
