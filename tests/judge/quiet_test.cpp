// A session in which nothing moves for long reaches a person. Nothing ends by it.

#include <gtest/gtest.h>

#include "judge/alert_rule.h"
#include "judge/attention.h"
#include "support/agent.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::Agent;

Attention attention_now(const Agent& agent) {
  return standing_of(agent.judged, WallTime{}).attention;
}

/// The state of the newest call as the monitor sees it.
Report seen(const std::string& words) {
  Report report{.kind = ReportKind::tool_progress, .name = "Bash", .content = words};
  report.detail = ToolProgress{};
  return report;
}

/// Four usual calls, and then one that does not end.
Agent agent_in_call(const std::string& tool) {
  Agent agent;
  for (int n = 0; n < 4; ++n) agent.call("Read", std::to_string(n), "line " + std::to_string(n));
  agent.begin(tool, R"({"command":"make check"})");
  return agent;
}

TEST(Quiet, a_call_in_which_nothing_moves_is_watched) {
  auto agent = agent_in_call("Bash");
  agent.pass(9min);
  EXPECT_EQ(attention_now(agent), Attention::working);
  agent.pass(2min);
  EXPECT_EQ(name_of(agent.health()), "slow") << "it is slow, and not stuck";
  EXPECT_EQ(agent.pattern(), Pattern::quiet);
  EXPECT_EQ(attention_now(agent), Attention::watch);
  const auto reason = reason_of(agent.judged, agent.now);
  EXPECT_NE(reason.find("Tool Bash `make check` has run for 11 min"), std::string::npos) << reason;
  EXPECT_NE(reason.find("its process is not known"), std::string::npos) << reason;
  agent.pass(48h);
  EXPECT_FALSE(agent.ever_confirmed());
}

TEST(Quiet, an_agent_that_asks_for_nothing_after_a_result_is_watched) {
  Agent agent;
  for (int n = 0; n < 4; ++n) agent.call("Read", std::to_string(n), "line " + std::to_string(n));
  agent.fail("Edit", "{}", "the file must be read before").helper().pass(12min);
  EXPECT_EQ(attention_now(agent), Attention::watch) << agent.story();
  const auto reason = reason_of(agent.judged, agent.now);
  EXPECT_NE(reason.find("Edit failed"), std::string::npos) << reason;
}

TEST(Quiet, a_rising_counter_is_a_movement) {
  auto agent = agent_in_call("Bash");
  for (int n = 0; n < 60; ++n) {
    agent.pass(1min);
    agent.beat(Source::sidecar, {{"cpu_ms", 1'000.0 * n}});
    EXPECT_EQ(attention_now(agent), Attention::working) << n;
  }
}

TEST(Quiet, ten_times_what_is_usual_is_not_quiet) {
  Agent agent;
  for (int n = 0; n < 12; ++n)
    agent.begin("Bash", std::to_string(n)).pass(5min).done("Bash", std::to_string(n));
  agent.begin("Bash", "13").pass(45min);
  EXPECT_EQ(attention_now(agent), Attention::working) << agent.story();
  agent.pass(10h);
  EXPECT_EQ(attention_now(agent), Attention::watch) << agent.story();
}

class SeenByTheMonitor : public testing::Test {
 protected:
  /// After a minute the monitor says these words, and after each further one.
  void see(const std::string& words, int minutes) {
    for (int n = 0; n < minutes; ++n) {
      agent.pass(1min);
      agent.from_monitor(seen(words));
    }
  }
  Agent agent = agent_in_call("Bash");
};

TEST_F(SeenByTheMonitor, processes_that_work_are_never_quiet) {
  see("", 60);
  EXPECT_EQ(name_of(agent.health()), "slow");
  EXPECT_EQ(attention_now(agent), Attention::working);
}

TEST_F(SeenByTheMonitor, processes_that_sleep_are_named) {
  see(std::string(call_reports::sleeps), 11);
  EXPECT_EQ(attention_now(agent), Attention::watch);
  EXPECT_EQ(name_of(agent.health()), "slow");
  const auto reason = reason_of(agent.judged, agent.now);
  EXPECT_NE(reason.find("its process sleeps"), std::string::npos) << reason;
}

TEST_F(SeenByTheMonitor, a_command_without_a_process_is_suspect_at_once) {
  see(std::string(call_reports::no_process), 1);
  EXPECT_EQ(name_of(agent.health()), "suspect");
  const auto reason = reason_of(agent.judged, agent.now);
  EXPECT_NE(reason.find("no process runs for it"), std::string::npos) << reason;
  agent.done("Bash", "ok");
  EXPECT_EQ(name_of(agent.health()), "progressing");
}

TEST_F(SeenByTheMonitor, no_text_of_a_child_is_in_a_message) {
  see(std::string(call_reports::waits_for) + "s:saw: last progress: secret", 11);
  const auto& judged = agent.judged;
  EXPECT_NE(reason_of(judged, agent.now).find("secret"), std::string::npos);
  const auto shown = public_reason_of(judged.health, judged.history, *judged.policy, agent.now);
  EXPECT_EQ(shown.sentence.find("secret"), std::string::npos) << shown.sentence;
}

}  // namespace
}  // namespace watchdog
