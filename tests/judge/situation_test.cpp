#include "judge/situation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "support/agent.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::Agent;

json reported(const Agent& agent, const SituationContext& around = {}) {
  const auto text = situation_of(agent.judged, agent.now, around);
  EXPECT_LE(text.size(), situation_bytes_max);
  return json::parse(text, nullptr, false);
}

TEST(Situation, of_a_session_that_said_nothing_is_empty) {
  EXPECT_EQ(reported(Agent()), json::parse(R"({"inFlight":[],"lastEvents":[],"repeated":null,
      "pace":null,"silenceMs":30000,"loopHeartbeats":0,"confirmations":0,"opinions":null,
      "counters":{},"quietSinceMs":null,"process":null})"));
}

TEST(Situation, names_what_is_in_flight_since_when_and_for_how_long) {
  Agent agent;
  agent.begin("fetch", "{}", "c1").pass(3s);
  agent.say({.kind = ReportKind::tool_call, .name = "shell", .deadline = 60'000ms}).pass(4s);
  EXPECT_EQ(reported(agent)["inFlight"], json::parse(R"([
      {"name":"fetch","callId":"c1","seq":1,"ageMs":7000,"deadlineMs":null},
      {"name":"shell","callId":null,"seq":2,"ageMs":4000,"deadlineMs":60000}])"));
  agent.done("fetch", "ok", "c1");
  EXPECT_EQ(reported(agent)["inFlight"].size(), 1U);
}

TEST(Situation, shows_what_is_repeated_with_its_rounds) {
  Agent agent;
  for (int i = 0; i < 2; ++i) agent.call("ls", R"({"path":"a"})", test::long_text("a"));
  EXPECT_EQ(reported(agent)["repeated"], nullptr) << "twice is nothing";
  agent.call("ls", R"({"path":"a"})", test::long_text("a"));
  ASSERT_EQ(agent.health(), HealthKind::suspect);
  const auto repeated = reported(agent)["repeated"];
  EXPECT_EQ(repeated["pattern"], "R1");
  EXPECT_EQ(repeated["count"], 3.0);
  EXPECT_EQ(repeated["first"], 2);
  EXPECT_EQ(repeated["last"], 6);
  EXPECT_TRUE(repeated["score"].is_number());
  EXPECT_EQ(repeated["steps"], json::parse(R"([{"seq":2,"again":false},{"seq":4,"again":true},
      {"seq":6,"again":true}])"));
  EXPECT_EQ(reported(agent)["confirmations"], 1);
  for (int i = 0; i < 2; ++i) agent.call("ls", R"({"path":"a"})", test::long_text("a"));
  ASSERT_EQ(agent.health(), HealthKind::looping);
  EXPECT_EQ(reported(agent)["repeated"]["count"], 4.0) << "a confirmation keeps what it was for";
}

TEST(Situation, compares_its_pace_with_the_bounds) {
  Agent agent;
  agent.state("{}").pass(20s).state("{}").pass(40s);
  auto pace = reported(agent)["pace"];
  EXPECT_EQ(pace["activity"], nullptr);
  EXPECT_EQ(pace["sinceMs"], 40'000);
  const auto bounds = pace_now(agent.judged.history, *agent.judged.policy).bounds;
  EXPECT_EQ(pace["usualMs"], nullptr) << "one interval is no history";
  EXPECT_EQ(pace["slowMs"], bounds.slow.count());
  EXPECT_EQ(pace["suspectMs"], bounds.suspect.count());
  for (int i = 0; i < 4; ++i) agent.pass(20s).state("{}");
  const auto usual = reported(agent)["pace"]["usualMs"];
  EXPECT_GE(usual, 20'000);
  EXPECT_LE(usual, 30'000) << "its own intervals, without what stands for others";
  agent.begin("make", "{}").pass(1s);
  pace = reported(agent)["pace"];
  EXPECT_EQ(pace["activity"], "make");
  EXPECT_EQ(pace["sinceMs"], 1'000);
  EXPECT_EQ(pace["suspectMs"], nullptr) << "without a deadline it waits";
  agent.done("make", "ok").kind(ReportKind::wait, "ann");
  EXPECT_EQ(reported(agent)["pace"], nullptr) << "on purpose";
}

TEST(Situation, phi_says_what_the_bounds_say) {
  Policy policy;
  policy.slow_min = policy.suspect_min = 0ms;
  std::mt19937 random(test::random_seed());
  for (int round = 0; round < test::repetitions(2'000); ++round) {
    Pace pace;
    const auto usual = std::uniform_real_distribution<>(0, 12)(random);
    for (auto count = random() % 40; count > 0; --count)
      pace.add(1, Millis{std::llround(std::exp(usual + std::normal_distribution<>()(random)))});
    const auto bounds = pace.bounds(1, policy);
    // 3.09 and 4.265 standard deviations.
    EXPECT_NEAR(pace.phi(1, bounds.slow, policy), 3, 0.05) << bounds.slow.count();
    EXPECT_NEAR(pace.phi(1, bounds.suspect, policy), 5, 0.05) << bounds.suspect.count();
    EXPECT_LE(pace.phi(1, bounds.usual, policy), 0.31);
  }
}

TEST(Situation, phi_is_a_number_at_the_extremes) {
  const Policy policy;
  for (const auto interval : {Millis{0}, Millis{1}, Millis::max()}) {
    Pace pace;
    for (int i = 0; i < 300; ++i) pace.add(1, interval);
    for (const std::uint32_t kind : {1U, 2U}) {
      double before = 0;
      for (const auto elapsed : {Millis::min(), Millis{-1}, Millis{0}, Millis{1}, Millis{1'000},
                                 Millis{1'000'000'000}, Millis::max()}) {
        const auto phi = pace.phi(kind, elapsed, policy);
        EXPECT_TRUE(phi >= before && phi <= Pace::phi_max) << elapsed.count() << ": " << phi;
        before = phi;
      }
    }
  }
  Pace broken;
  broken.samples.push_back({.kind = 1,
                            .count = 10,
                            .mean = std::numeric_limits<float>::quiet_NaN(),
                            .deviations = std::numeric_limits<float>::infinity()});
  EXPECT_EQ(broken.phi(1, 1s, policy), 0);
}

TEST(Situation, counts_heartbeats_and_knows_when_a_counter_rose) {
  Agent agent;
  agent.state("{}").loop().loop().pass(1s).beat(Source::loop, {{"tokens", 5}}).pass(9s);
  auto now = reported(agent);
  EXPECT_EQ(now["loopHeartbeats"], 3);
  EXPECT_EQ(now["counters"], json::parse(R"({"tokens":5.0})"));
  EXPECT_EQ(now["quietSinceMs"], 9'000);
  agent.pass(1s).beat(Source::loop, {{"tokens", 5}});
  EXPECT_EQ(reported(agent)["quietSinceMs"], 10'000) << "it only stayed";
}

TEST(Situation, silence_is_as_long_as_its_gaps_make_it) {
  Agent agent;
  agent.helper().pass(20s).helper();
  EXPECT_EQ(reported(agent)["silenceMs"], 50'000);
}

TEST(Situation, reports_opinions) {
  Agent agent;
  for (int i = 0; i < 3; ++i) agent.call("ls", R"({"path":"a"})", test::long_text("a"));
  agent.opinion(Verdict::looping, 0.95).opinion(Verdict::failed, {}, 0, "self");
  const auto now = reported(agent);
  EXPECT_EQ(now["opinions"], json::parse(R"({"newest":"B","looping":2,"blocked":0,
      "self":true,"seq":8})"));
  EXPECT_EQ(now["confirmations"], 3);
}

TEST(Situation, names_events_and_the_process) {
  SituationContext around{.events = {3, 5, 8}};
  around.process =
      ProcessTree{.root = {.pid = 7, .threads = 2, .state = 'S', .cpu = 50ms, .wchan = "do_wait"},
                  .children = {{.pid = 8, .parent = 7, .state = 'D', .command = "tar\xff"}}};
  const auto now = reported(Agent(), around);
  EXPECT_EQ(now["lastEvents"], (json{3, 5, 8}));
  EXPECT_EQ(now["process"], json::parse(R"({"pid":7,"state":"S","cpuMs":50,"wchan":"do_wait",
      "threads":2,"children":[{"pid":8,"parent":7,"command":"tar\ufffd","state":"D","cpuMs":0,
      "wchan":null}]})"));
}

TEST(Situation, stays_small_whatever_names_agents_and_processes_have) {
  constexpr auto large = std::numeric_limits<std::int64_t>::max();
  for (const char letter : {'a', '\x01', '"', '\xff', '\x80'}) {
    const std::string name(64, letter);
    Agent agent;
    Counters counters;
    for (int i = 0; i < 16; ++i)
      counters.emplace_back(name.substr(0, 62) + std::to_string(i), -1e-300);
    agent.beat(Source::loop, counters);
    for (int i = 0; i < 40; ++i) agent.call(name, R"({"path":"a"})", test::long_text("a"));
    for (int i = 0; i < 40; ++i) {
      agent.say({.kind = ReportKind::tool_call, .name = name, .call_id = name, .deadline = 1h});
    }
    for (auto& call : agent.judged.history.open_calls.edit()) call.seq = large;
    for (auto& step : agent.judged.history.repetition.edit().steps) step.seq = large;
    SituationContext around{.events = std::vector<Seq>(20, large)};
    const ProcessSample sample{.pid = large,
                               .parent = large,
                               .threads = large,
                               .state = letter,
                               .cpu = Millis{large},
                               .command = name,
                               .wchan = name};
    around.process =
        ProcessTree{.root = sample, .children = std::vector<ProcessSample>(16, sample)};
    const auto now = reported(agent, around);
    ASSERT_TRUE(now.is_object()) << letter;
    EXPECT_GE(now["inFlight"].size(), 8U);
    EXPECT_EQ(now["lastEvents"].size(), 20U);
    EXPECT_NE(now["repeated"], nullptr);
    EXPECT_GE(now["process"]["children"].size(), 8U);
  }
}

TEST(Situation, comes_from_the_provider_in_trouble_and_never_else) {
  std::vector<std::pair<Seq, HealthKind>> asked;
  const DetailProvider details = [&](const Case& judged, Instant) {
    asked.emplace_back(judged.history.seq, judged.health.kind);
    return std::string("{}");
  };
  Case judged;
  judged.session = 1;
  std::vector<Transition> changes;
  for (const auto& event : test::events_of("S hhhhh S w S ss"))
    judged.fold(event, changes, &details);
  judged.expire(Instant{Millis{1'000'000'000}}, changes, &details);
  std::string situations;
  for (const auto& change : changes) {
    EXPECT_EQ(change.situation.empty(), !is_trouble(change.health.kind));
    if (!change.situation.empty()) situations += std::string(name_of(change.health.kind)) + " ";
  }
  EXPECT_EQ(situations, "stuck silent ");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0], std::pair(Seq{6}, HealthKind::progressing)) << "before it is concluded";
}

}  // namespace
}  // namespace watchdog
