#include <gtest/gtest.h>

#include <random>

#include "support/agent.h"
#include "support/scenario.h"
#include "watchdog/health.h"

namespace watchdog {
namespace {

using test::Agent;
using test::path_of;
using test::replay;
using namespace std::chrono_literals;

Report evidence(Evidence said, const std::string& why = {}, const std::string& request = "1") {
  Report report{.kind = ReportKind::evidence, .content = why, .call_id = request};
  report.detail = said;
  return report;
}

Report evidence(ServerState state, const std::string& why = {}, const std::string& request = "1") {
  return evidence(Evidence{.state = state}, why, request);
}

std::string why(const Agent& agent) {
  return reason_of(agent.judged.health, agent.judged.history, *agent.judged.policy);
}

struct Row {
  const char* letters;
  HealthKind kind;
  Pattern pattern;
};

class ServerTable : public testing::TestWithParam<Row> {};

TEST_P(ServerTable, judges_by_what_the_server_does) {
  const auto& [letters, kind, pattern] = GetParam();
  const auto health = replay(letters).judged.health;
  EXPECT_EQ(name_of(health.kind), name_of(kind)) << letters;
  EXPECT_EQ(name_of(health.pattern), name_of(pattern)) << letters;
}

INSTANTIATE_TEST_SUITE_P(
    Sessions, ServerTable,
    testing::Values(Row{"R", HealthKind::unknown, Pattern::none},
                    Row{"y", HealthKind::starting, Pattern::none},
                    Row{"S R", HealthKind::progressing, Pattern::none},
                    Row{"S R hhhhhhhh", HealthKind::progressing, Pattern::none},
                    Row{"S q hhhhhhhh", HealthKind::progressing, Pattern::none},
                    Row{"S Q hhhhhhhh", HealthKind::stuck, Pattern::no_state_change},
                    Row{"S R hhhhhhhh O", HealthKind::progressing, Pattern::none},
                    Row{"S R O hhhhhhhh", HealthKind::stuck, Pattern::no_state_change},
                    Row{"S H", HealthKind::stuck, Pattern::server_status},
                    Row{"H", HealthKind::stuck, Pattern::server_status},
                    Row{"S H R", HealthKind::progressing, Pattern::none},
                    Row{"S H Q", HealthKind::progressing, Pattern::none},
                    Row{"S H O", HealthKind::progressing, Pattern::none},
                    Row{"S H !", HealthKind::progressing, Pattern::none},
                    Row{"S H w", HealthKind::blocked, Pattern::declared_wait},
                    Row{"S w H", HealthKind::blocked, Pattern::declared_wait},
                    Row{"S H S", HealthKind::stuck, Pattern::server_status},
                    Row{"S H i", HealthKind::progressing, Pattern::none},
                    Row{"S H hhhhhhhh", HealthKind::stuck, Pattern::server_status},
                    Row{"S ss H ++++ R", HealthKind::silent, Pattern::silence},
                    Row{"S ss H ++++ y", HealthKind::stuck, Pattern::server_status}),
    [](const auto& chosen) { return "session" + std::to_string(chosen.index); });

TEST(Server, that_reads_for_hours_makes_the_session_slow_and_nothing_worse) {
  Agent agent;
  agent.state("1").say(evidence({.state = ServerState::reading, .total = 61'440}));
  for (std::int64_t done = 2'048; done <= 61'440; done += 2'048) {
    agent.pass(10min).say(evidence({.state = ServerState::reading, .done = done, .total = 61'440}));
  }
  EXPECT_EQ(name_of(agent.health()), "slow") << agent.story();
  EXPECT_EQ(name_of(agent.pattern()), "F5");
  EXPECT_EQ(agent.judged.health.evidence[0], agent.seq);
  EXPECT_EQ(agent.changes.size(), 2U) << "one change of health, however often it is told";
  EXPECT_FALSE(agent.ever(HealthKind::suspect));
  EXPECT_EQ(evidence_note(agent.judged.health, 0), "what the model server does");
}

TEST(Server, that_is_busy_without_reporting_more_is_slow_at_most_however_long) {
  for (const auto state : {ServerState::loading, ServerState::queued, ServerState::working}) {
    Agent agent;
    agent.state("1").say(evidence(state)).pass(24h);
    EXPECT_EQ(name_of(agent.health()), "slow") << name_of(state);
    EXPECT_FALSE(agent.ever(HealthKind::suspect)) << name_of(state);
    // From here on it is as if nothing had been quiet before.
    agent.say(evidence(ServerState::quiet));
    EXPECT_EQ(name_of(agent.health()), "slow") << name_of(state);
    EXPECT_EQ(name_of(agent.pattern()), "F3");
    EXPECT_EQ(name_of(agent.pass(24h).health()), "suspect");
    EXPECT_FALSE(agent.ever_confirmed());
  }
}

TEST(Server, that_is_quiet_gone_or_restarted_has_no_health_of_its_own) {
  for (const auto state :
       {ServerState::unknown, ServerState::quiet, ServerState::gone, ServerState::restarted}) {
    Agent agent;
    agent.state("1").say(evidence(state));
    EXPECT_EQ(name_of(agent.health()), "progressing") << name_of(state);
    EXPECT_EQ(name_of(agent.pass(24h).pattern()), "F3") << name_of(state);
  }
}

TEST(Server, slow_begins_where_the_pace_says) {
  Agent agent;
  agent.state("1").say(evidence(ServerState::queued));
  const auto slow_at = pace_now(agent.judged.history, {}).slow_at;
  EXPECT_EQ(agent.judged.health.valid_until, slow_at);
  EXPECT_EQ(judge(agent.judged.history, {}, slow_at - 1ms).kind, HealthKind::progressing);
  EXPECT_EQ(judge(agent.judged.history, {}, slow_at).pattern, Pattern::server_status);
}

TEST(Server, of_several_requests_the_one_that_is_best_off_counts) {
  Agent agent;
  agent.state("1");
  agent.say(evidence(ServerState::hung, "", "a")).say(evidence(ServerState::quiet, "", "b"));
  EXPECT_EQ(name_of(agent.health()), "stuck");
  agent.say(evidence(ServerState::queued, "", "c"));
  EXPECT_EQ(name_of(agent.health()), "progressing") << "one of them moves";
  EXPECT_EQ(server_note(agent.judged.history)->request, "c");
  agent.say(evidence(ServerState::over, "", "c"));
  EXPECT_EQ(name_of(agent.health()), "stuck");
  agent.say(evidence(ServerState::over, "", "a")).say(evidence(ServerState::over, "", "b"));
  EXPECT_EQ(server_note(agent.judged.history), nullptr);
  EXPECT_FALSE(agent.judged.history.notes->server.has());
}

TEST(Server, requests_beyond_eight_replace_the_one_that_was_heard_of_longest_ago) {
  Agent agent;
  for (int at = 0; at < 20; ++at) {
    agent.say(evidence(ServerState::queued, "", std::to_string(at)));
    agent.say(evidence(ServerState::reading, "", "0"));
  }
  const auto& known = *agent.judged.history.notes->server;
  EXPECT_EQ(known.size(), server_notes_max);
  EXPECT_EQ(known.front().request, "0") << "it is told of again and again";
}

TEST(Server, that_moves_ends_the_wait_for_it_and_no_other_wait) {
  Agent agent;
  agent.state("1").say(evidence(ServerState::gone)).kind(ReportKind::wait, std::string(backend));
  EXPECT_EQ(name_of(agent.health()), "blocked");
  EXPECT_EQ(name_of(agent.say(evidence(ServerState::restarted)).health()), "blocked");
  EXPECT_EQ(name_of(agent.say(evidence(ServerState::loading)).health()), "progressing");
  agent.kind(ReportKind::wait, "approval");
  EXPECT_EQ(name_of(agent.say(evidence(ServerState::writing)).health()), "blocked");
}

TEST(Server, evidence_is_not_a_sign_of_life_of_the_agent) {
  const auto replayed = replay("S ss ++ R+ R+ R");
  EXPECT_EQ(path_of(replayed), "progressing silent");
  EXPECT_FALSE(replay("R").judged.history.said_something);
}

TEST(Server, doubt_by_repetition_stays_while_it_is_busy) {
  Agent agent;
  agent.say(evidence(ServerState::reading));
  for (int round = 0; round < 3; ++round) agent.call("sh", "make", test::long_text("it"));
  EXPECT_EQ(name_of(agent.health()), "suspect") << agent.story();
  EXPECT_EQ(confirmations(agent.judged.history, {}), 1);
  agent.say(evidence(ServerState::hung));
  EXPECT_EQ(name_of(agent.pattern()), "F5");
  EXPECT_EQ(confirmations(agent.judged.history, {}), 2);
}

TEST(Server, activity_is_described_in_a_sentence) {
  Agent agent;
  const auto said = [&](Evidence replayed, const std::string& proof = {}) {
    if (is_busy(replayed.state)) agent.say(evidence(replayed, proof)).pass(24h);
    agent.say(evidence(replayed, proof));
    return why(agent);
  };
  agent.state("1");
  EXPECT_EQ(said({.state = ServerState::reading, .done = 41'216, .total = 61'440, .left = 118s}),
            "The model server reads the prompt: 41,216 of 61,440 tokens, about 2 min left");
  EXPECT_EQ(said({.state = ServerState::reading}), "The model server reads the prompt");
  EXPECT_EQ(said({.state = ServerState::reading, .done = 1'234'567, .left = 5s}),
            "The model server reads the prompt: 1,234,567 tokens so far, about 5 s left");
  EXPECT_EQ(said({.state = ServerState::writing, .done = 312}),
            "The model server writes the answer: 312 tokens so far");
  EXPECT_EQ(said({.state = ServerState::loading}), "The model server is loading the model");
  EXPECT_EQ(said({.state = ServerState::queued}, "3 before it"),
            "The model server has queued the request: 3 before it");
  EXPECT_EQ(said({.state = ServerState::working}, "its process used 9 s of CPU"),
            "The model server is busy; its progress is not known: its process used 9 s "
            "of CPU");
  EXPECT_EQ(said({.state = ServerState::hung}, "no token, no CPU"),
            "The model server hangs: no token, no CPU");
  Report end{.kind = ReportKind::end};
  end.detail = Outcome{};
  agent.say(std::move(end));
  EXPECT_EQ(why(agent), "The model server hung") << "the last health stays after the end";
  EXPECT_EQ(server_in_brief(
                {.state = ServerState::reading, .done = 41'216, .total = 61'440, .left = 118s}),
            "reading 41,216 / 61,440, ~2 min");
  EXPECT_EQ(server_in_brief({.state = ServerState::queued}), "queued");
}

TEST(Server, numbers_beyond_all_bounds_are_brought_within_them) {
  Agent agent;
  agent.say(evidence(
      {.state = ServerState::reading, .done = INT64_MIN, .total = INT64_MAX, .left = Millis::max()},
      std::string(5'000, 'x')));
  const auto* note = server_note(agent.judged.history);
  EXPECT_EQ(note->evidence, (Evidence{ServerState::reading, 0, 1'000'000'000'000, 168h}));
  EXPECT_EQ(note->why.size(), 200U);
}

TEST(Relay, heartbeats_keep_alive_and_prove_no_loop) {
  const auto replayed = replay("S yyyyyyyyyyyyyyy");
  EXPECT_TRUE(is_alive(replayed.judged.history, {}, replayed.now));
  EXPECT_EQ(name_of(replayed.judged.health.kind), "progressing");
  EXPECT_EQ(silence_begins(replayed.judged.history, {}) > replayed.now, true);
  EXPECT_NE(name_of(judge(replayed.judged.history, {}, replayed.now + 1h).kind), "silent");
  EXPECT_EQ(replayed.judged.history.periodic_beats, 0);
  EXPECT_EQ(replayed.judged.history.gaps.longest(), 0ms);
}

TEST(Relay, phase_counts_only_where_the_agent_gives_no_position) {
  Heartbeats beats{.phase = "reading", .source = Source::relay};
  const auto relay = [&] {
    Report report;
    report.detail = beats;
    return report;
  };
  Agent agent;
  agent.say(relay());
  EXPECT_EQ(agent.judged.history.phase, "reading");
  EXPECT_FALSE(agent.judged.history.gives_position);
  // The agent's own heartbeats still count as those of its loop.
  for (int at = 0; at < 5; ++at) agent.say(relay()).beat(Source::loop);
  EXPECT_EQ(name_of(agent.pattern()), "F1");
  Report own;
  own.detail = Heartbeats{.phase = "edit"};
  agent.say(own).say(relay());
  EXPECT_EQ(agent.judged.history.phase, "edit");
}

TEST(Relay, counters_in_its_heartbeats_count) {
  Agent agent;
  agent.state("1");
  for (int at = 1; at < 20; ++at) agent.loop().beat(Source::relay, {{"tokens", at}});
  EXPECT_EQ(name_of(agent.health()), "progressing");
}

TEST(Relay, that_is_heard_no_more_says_nothing_of_the_server_after_a_while) {
  Agent agent;
  agent.state("1").say(evidence(ServerState::queued));
  for (int at = 0; at < 720; ++at) agent.pass(5s).beat(Source::relay);
  EXPECT_EQ(name_of(agent.pattern()), "F5") << "for an hour: " << agent.story();
  const auto heard = agent.now;
  const Policy policy;
  EXPECT_EQ(agent.judged.health.valid_until, heard + policy.call_idle_max);
  EXPECT_EQ(name_of(agent.pass(policy.call_idle_max).pattern()), "F3");
  EXPECT_FALSE(agent.ever_confirmed());
}

/// A session whose agent and whose server do anything.
struct Stream {
  explicit Stream(unsigned seed) : random(seed) {}

  int below(int bound) { return std::uniform_int_distribution<>(0, bound - 1)(random); }

  void act(Agent& agent) {
    switch (below(9)) {
      case 0:
        agent.loop();
        break;
      case 1:
        agent.beat(Source::relay, {{"tokens", below(5)}});
        break;
      case 2:
        agent.begin("sh", std::to_string(++step));
        break;
      case 3:
        agent.done("sh", test::long_text(std::to_string(step)));
        break;
      case 4:
        agent.state(std::to_string(++step));
        break;
      case 5:
        agent.beat(Source::unsaid);
        break;
      case 6:
        agent.pass(Millis{below(4'000'000)});
        break;
      default:
        agent.say(evidence({.state = static_cast<ServerState>(below(11)), .done = below(9)}, "",
                           std::to_string(below(3))));
    }
  }

  std::mt19937 random;
  int step = 0;
};

TEST(ServerProperty, busy_is_never_suspect_nor_stuck_and_only_hung_is_trouble_by_itself) {
  Stream stream(test::random_seed());
  int busy_and_slow = 0, hung = 0;
  for (int run = 0; run < test::repetitions(2'000); ++run) {
    Agent agent;
    for (int event = 0; event < 60; ++event) {
      stream.act(agent);
      const auto& history = agent.judged.history;
      const auto* note = server_note(history);
      const bool counts =
          note != nullptr && agent.now < server_known_until(history, *agent.judged.policy);
      const bool by_time =
          agent.pattern() == Pattern::no_state_change || agent.pattern() == Pattern::below_pace;
      const bool trouble =
          agent.health() == HealthKind::suspect || agent.health() == HealthKind::stuck;
      if (counts && is_busy(note->evidence.state)) {
        ASSERT_FALSE(by_time && trouble) << agent.story();
        busy_and_slow += agent.pattern() == Pattern::server_status ? 1 : 0;
      }
      const bool hangs = counts && note->evidence.state == ServerState::hung;
      if (agent.health() == HealthKind::stuck && agent.pattern() == Pattern::server_status) {
        ASSERT_TRUE(hangs) << agent.story();
      } else if (hangs) {
        ASSERT_TRUE(agent.health() == HealthKind::silent || is_repetition(agent.pattern()))
            << agent.story();
      }
      hung += hangs ? 1 : 0;
    }
    // Time alone confirms nothing.
    const bool was = agent.health() == HealthKind::stuck || agent.health() == HealthKind::looping;
    const bool excused = !agent.judged.history.open_calls->empty();
    agent.pass(24h * 30);
    const bool is = agent.health() == HealthKind::stuck || agent.health() == HealthKind::looping;
    // F1 is the exception: it finds a loop that repeats without a change once its excuse is over.
    ASSERT_TRUE(!is || was || excused || agent.pattern() == Pattern::no_state_change)
        << agent.story();
    // The same events give the same.
    Case again;
    again.session = 1;
    std::vector<Transition> changes;
    for (const auto& event : agent.events) again.fold(event, changes);
    again.expire(agent.now, changes);
    ASSERT_TRUE(again.health.same_as(agent.judged.health));
    ASSERT_EQ(changes.size(), agent.changes.size());
    // Whatever it was, what is over is over.
    for (const char* request : {"0", "1", "2"}) {
      agent.say(evidence(ServerState::over, "", request));
    }
    ASSERT_NE(agent.pattern(), Pattern::server_status) << agent.story();
  }
  EXPECT_GT(busy_and_slow, 100);
  EXPECT_GT(hung, test::repetitions(2'000) / 2);
}

}  // namespace
}  // namespace watchdog
