// What the judge makes of calls that a rule refuses: nothing. The monitor's own acts neither end a
// loop nor confirm one.

#include <gtest/gtest.h>

#include "facts/agent_tools.h"
#include "support/agent.h"

namespace watchdog {
namespace {

using test::Agent;

const std::string args = R"({"command":"pytest tests/a"})";

Report refused(int number) {
  Report report{.kind = ReportKind::error, .name = "Bash"};
  report.content = std::string(denied_call) + " the last 6 calls gave the same result";
  report.event_id = std::string(denied_call) + "rule:deny:1:" + std::to_string(number);
  return report;
}

/// A call that a rule refuses, and the claim of the act.
void refuse(Agent& agent, int number) {
  agent.begin("Bash", args);
  agent.from_monitor({.kind = ReportKind::message,
                      .name = "hook",
                      .content = "rule deny did refuse " + std::to_string(number)});
  agent.from_monitor(refused(number));
}

TEST(RefusedCalls, are_neither_progress_nor_a_step) {
  Agent agent;
  for (int i = 0; i < 6; ++i) agent.call("Bash", args, "2 failed");
  ASSERT_EQ(agent.health(), HealthKind::looping);
  const auto& history = agent.judged.history;
  const auto changes = history.state_changes;
  const auto change = history.change_seq;
  const auto steps = history.repetition->steps.size();
  const auto times = history.repetition->same_result.count;
  for (int i = 0; i < 8; ++i) refuse(agent, i);
  EXPECT_EQ(agent.health(), HealthKind::looping) << agent.story();
  EXPECT_EQ(history.state_changes, changes);
  EXPECT_EQ(history.change_seq, change);
  EXPECT_EQ(history.repetition->steps.size(), steps);
  EXPECT_TRUE(history.open_calls->empty());
  // The next call that runs counts on.
  agent.call("Bash", args, "2 failed");
  EXPECT_EQ(history.repetition->same_result.count, times + 1);
}

TEST(RefusedCalls, confirm_no_loop) {
  Agent agent;
  agent.call("Bash", args, "2 failed");
  for (int i = 0; i < 30; ++i) refuse(agent, i);
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RefusedCalls, are_known_by_their_origin) {
  // An agent that reports such an id itself deceives nobody but its owner, and it is not believed.
  Agent agent;
  for (int i = 0; i < 12; ++i) {
    agent.begin("Bash", args);
    agent.say(refused(i), ReportOrigin::agent);
  }
  EXPECT_TRUE(agent.ever_confirmed()) << agent.story();
}

TEST(RefusedCalls, of_a_parallel_round_leave_the_other_calls_alone) {
  Agent agent;
  for (int i = 0; i < 6; ++i) {
    agent.begin("Bash", args, "a" + std::to_string(i)).begin("Read", "x", "b" + std::to_string(i));
    auto denied = refused(i);
    denied.call_id = "a" + std::to_string(i);
    agent.from_monitor(denied);
    agent.done("Read", "the same text", "b" + std::to_string(i));
  }
  EXPECT_TRUE(agent.ever(HealthKind::looping)) << agent.story();
  EXPECT_TRUE(agent.judged.history.open_calls->empty());
}

}  // namespace
}  // namespace watchdog
