// Turns, how far their calls are, and calls that nobody waits for any longer.
#include <gtest/gtest.h>

#include "support/agent.h"
#include "support/reports.h"

namespace watchdog {
namespace {

using test::Agent;
using test::call_in;
using test::turn;
using namespace std::chrono_literals;

std::string turns_of(const Agent& agent) {
  std::string ids;
  for (const auto& open : *agent.judged.history.notes->turns) ids += open.id + " ";
  return ids;
}

Report progress(std::int64_t accepted, std::string id = "c") {
  Report report{.kind = ReportKind::tool_progress, .name = "shell", .call_id = std::move(id)};
  report.detail = ToolProgress{.accepted = accepted};
  return report;
}

Report timeout(std::string tool, std::string id = {}, std::string text = "[TIMEOUT]") {
  return {.kind = ReportKind::tool_timeout,
          .name = std::move(tool),
          .content = std::move(text),
          .call_id = std::move(id)};
}

TEST(Turns, are_known_from_their_start_to_their_end) {
  Agent agent;
  agent.say(turn(turn_reports::turn_start, "outer")).pass(1s);
  agent.say(turn(turn_reports::turn_start, "inner", {.parent = "outer", .depth = 1}));
  agent.say(call_in("inner", "c1")).say(call_in("inner", "c2", "read"));
  EXPECT_EQ(turns_of(agent), "outer inner ");
  const auto& history = agent.judged.history;
  const auto* inner = find_turn(history, "inner");
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->parent, "outer");
  EXPECT_EQ(inner->depth, 1);
  EXPECT_EQ(inner->since, agent.now);
  EXPECT_EQ(inner->calls, 2);
  EXPECT_EQ(newest_call(history, "inner")->name, "read");
  EXPECT_EQ(newest_call(history, "outer"), nullptr);
  agent.done("read", "ok", "c2");
  EXPECT_EQ(newest_call(history, "inner")->name, "shell");
  agent.say(turn(turn_reports::turn_start, "inner"));
  EXPECT_EQ(find_turn(history, "inner")->calls, 2) << "told again it is the same turn";
  agent.say(turn(turn_reports::turn_end, "inner", {.reason = "aborted"}));
  EXPECT_EQ(turns_of(agent), "outer ");
  EXPECT_TRUE(history.open_calls->empty()) << "nobody hears of its calls any more";
  agent.say(turn(turn_reports::turn_end, "inner")).say(turn(turn_reports::turn_end, "outer"));
  EXPECT_EQ(turns_of(agent), "");
}

TEST(Turns, are_forgotten_when_the_attempt_ends_or_another_process_begins) {
  for (const auto kind : {ReportKind::end, ReportKind::start}) {
    Agent agent;
    agent.say(turn(turn_reports::turn_start, "t"));
    agent.say(kind == ReportKind::end ? test::ending() : Report{.kind = kind});
    EXPECT_EQ(turns_of(agent), "") << name_of(kind);
  }
}

TEST(Turns, of_many_the_newest_are_kept) {
  Agent agent;
  for (int i = 0; i < 40; ++i) agent.say(turn(turn_reports::turn_start, std::to_string(i)));
  EXPECT_EQ(agent.judged.history.notes->turns->size(), open_turns_max);
  EXPECT_EQ(agent.judged.history.notes->turns->front().id, "24");
}

TEST(Turns, are_no_progress_but_a_sign_of_life) {
  Agent agent;
  agent.state("{}").loop().loop().loop().loop();
  agent.pass(1s).say(turn(turn_reports::turn_start, "t"));
  EXPECT_EQ(agent.judged.history.last_sign, agent.now);
  agent.say(turn(turn_reports::turn_end, "t")).loop();
  EXPECT_EQ(agent.health(), HealthKind::stuck);
  EXPECT_EQ(agent.judged.history.state_changes, 1);
}

TEST(Turns, asked_to_stop_leave_the_session_as_it_is) {
  Agent agent;
  agent.say(turn(turn_reports::turn_start, "t")).say(turn(turn_reports::turn_start, "u"));
  agent.say(call_in("t", "c")).say(test::abort_of("t", "c"));
  EXPECT_FALSE(find_turn(agent.judged.history, "t")->aborting) << "only a call of it is to stop";
  agent.say(test::abort_of("t")).say(test::abort_of("gone"));
  EXPECT_TRUE(find_turn(agent.judged.history, "t")->aborting);
  agent.say(turn(turn_reports::turn_abort, "u", {.reason = "timeout"}));
  EXPECT_TRUE(find_turn(agent.judged.history, "u")->aborting);
  EXPECT_FALSE(agent.judged.history.notes->cancel);
}

TEST(Turns, ended_for_a_process_that_is_gone_are_no_sign_of_it) {
  Agent agent;
  agent.say(turn(turn_reports::turn_start, "t")).helper().pass(10s).helper().pass(10s);
  agent.kind(ReportKind::exited).pass(10min);
  ASSERT_EQ(agent.health(), HealthKind::dead);
  const auto sign = agent.judged.history.last_sign;
  agent.say(turn(turn_reports::turn_end, "t", {.reason = "aborted"}));
  EXPECT_EQ(agent.health(), HealthKind::dead);
  EXPECT_EQ(agent.judged.history.last_sign, sign);
  EXPECT_EQ(turns_of(agent), "");
}

TEST(ToolProgress, accepted_postpones_what_heartbeats_alone_do_not) {
  struct Row {
    const char* what;
    std::vector<std::int64_t> accepted;  ///< Reported every 50 s.
    HealthKind health;                   ///< After 210 s, of a call that has 60 s.
  };
  for (const auto& [what, accepted, health] :
       {Row{"heartbeats alone", {}, HealthKind::stuck},
        Row{"never accepted", {0, 0, 0, 0}, HealthKind::stuck},
        Row{"accepted once", {1, 1, 1, 1}, HealthKind::stuck},
        Row{"falling back", {5, 4, 3, 2}, HealthKind::stuck},
        Row{"accepted again and again", {1, 2, 3, 4}, HealthKind::progressing}}) {
    Agent agent;
    agent.state("{}");
    agent.say({.kind = ReportKind::tool_call, .name = "shell", .call_id = "c", .deadline = 60s});
    std::size_t reported = 0;
    for (int second = 1; second <= 210; ++second) {
      agent.pass(1s);
      if (second % 10 == 0) {
        Report beat;  // of the same iteration: a later one would have left the call behind
        beat.detail = Heartbeats{.source = Source::loop};
        agent.say(std::move(beat));
      }
      if (second % 50 == 0 && reported < accepted.size()) agent.say(progress(accepted[reported++]));
    }
    EXPECT_EQ(name_of(agent.health()), name_of(health)) << what << ": " << agent.story();
    EXPECT_EQ(agent.judged.history.state_changes, 1) << what;
  }
}

TEST(ToolProgress, a_call_over_its_deadline_is_suspect_and_says_by_how_much) {
  Agent agent;
  agent.state("{}");
  agent.say({.kind = ReportKind::tool_call, .name = "hang", .call_id = "c", .deadline = 3s});
  const auto reason = [&] {
    return reason_of(agent.judged.health, agent.judged.history, {}, agent.now);
  };
  agent.pass(5s);
  EXPECT_EQ(name_of(agent.health()), "progressing");
  EXPECT_NE(reason().find("hang: 2 s over its deadline of 3 s"), std::string::npos) << reason();
  agent.pass(19s);
  EXPECT_EQ(name_of(agent.health()), "suspect");
  EXPECT_EQ(reason(), "Hang: 21 s over its deadline of 3 s");
  auto moves = progress(1);
  moves.name = "hang";
  agent.say(std::move(moves));
  EXPECT_EQ(name_of(agent.health()), "progressing") << "its deadline begins again";
}

TEST(ToolProgress, of_an_unknown_call_moves_nothing) {
  Agent agent;
  agent.say(progress(5));
  EXPECT_EQ(agent.judged.history.last_rise, Instant{});
  agent.say(call_in("t", "c")).say(progress(1, "other"));
  EXPECT_EQ(agent.judged.history.last_rise, Instant{});
  auto reported = progress(1);
  reported.content = "half of it";
  agent.say(std::move(reported));
  EXPECT_EQ(agent.judged.history.last_rise, agent.now);
  EXPECT_EQ(agent.judged.history.open_calls->front().notes->said, "half of it");
}

TEST(ToolTimeout, is_a_state_change_once_for_a_tool_and_its_arguments) {
  struct Row {
    const char* what;
    std::vector<std::pair<std::string, std::string>> calls;  ///< Tool and arguments.
    std::int64_t changes;
  };
  for (const auto& [what, calls, changes] :
       {Row{"one", {{"make", "a"}}, 1},
        Row{"the same again", {{"make", "a"}, {"make", "a"}, {"make", "a"}}, 1},
        Row{"written otherwise",
            {{"make", R"({"x":1,"y":2})"}, {"make", R"({ "y": 2, "x": 1 })"}},
            1},
        Row{"other arguments", {{"make", "a"}, {"make", "b"}, {"make", "a"}}, 2},
        Row{"another tool", {{"make", "a"}, {"test", "a"}}, 2}}) {
    Agent agent;
    int ran = 0;
    for (const auto& [tool, args] : calls) {
      // The text differs each time, as its times do.
      agent.begin(tool, args)
          .pass(120s)
          .say(timeout(tool, {}, "[TIMEOUT] no answer, run " + std::to_string(++ran)));
    }
    EXPECT_EQ(agent.judged.history.state_changes, changes) << what;
    EXPECT_TRUE(agent.judged.history.open_calls->empty()) << what;
  }
}

TEST(ToolTimeout, is_still_known_after_a_result_of_the_same_call) {
  Agent agent;
  agent.begin("make", "a").say(timeout("make"));
  agent.call("make", "a", "built");
  agent.begin("make", "a").say(timeout("make"));
  EXPECT_EQ(agent.judged.history.state_changes, 2);
}

TEST(ToolTimeout, again_and_again_is_a_loop) {
  Agent agent;
  agent.state("{}");
  for (int i = 0; i < 4; ++i) {
    agent.begin("make", R"({"target":"all"})")
        .pass(120s)
        .say(timeout("make", {}, "[TIMEOUT] Tool \"make\" made no progress for 120s."))
        .loop();
  }
  EXPECT_EQ(agent.health(), HealthKind::looping) << agent.story();
  EXPECT_EQ(agent.judged.history.state_changes, 2) << "the state, and the first timeout";
}

TEST(ToolTimeout, is_distinguished_by_its_arguments_even_for_an_exempt_tool) {
  Policy policy;
  policy.tools["wait"] = {.use = ToolUse::exempt};
  Agent agent(policy);
  for (const char* args : {"a", "b", "b"}) agent.begin("wait", args).say(timeout("wait"));
  EXPECT_EQ(agent.judged.history.state_changes, 2);
}

TEST(ToolTimeout, known_already_does_not_feed_the_base_rule) {
  Agent agent;
  agent.begin("make", "a").say(timeout("make"));
  for (int i = 0; i < 5; ++i) agent.loop().begin("make", "a").say(timeout("make"));
  EXPECT_TRUE(base_rule(agent.judged.history, *agent.judged.policy));
}

}  // namespace
}  // namespace watchdog
