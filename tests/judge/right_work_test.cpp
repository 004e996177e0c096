// Reports of agents that work correctly. A detector that is too strict takes them for loops.

#include <gtest/gtest.h>

#include "support/agent.h"

namespace watchdog {
namespace {

using test::Agent;
using test::long_text;
using namespace std::chrono_literals;

TEST(RightWork, states_that_name_a_tool_only) {
  Agent agent;
  for (int i = 0; i < 40; ++i) {
    agent.state(R"({"tool":"bash","timestamp":"2026-01-01T00:00:00Z","elapsed_ms":)" +
                    std::to_string(12'000 + i) + "}",
                "tool_call");
    if (i % 3 == 0) agent.loop();
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RightWork, states_that_differ_by_an_id_or_a_time_of_their_own) {
  Agent agent;
  for (int i = 10; i < 40; ++i) {
    const auto n = std::to_string(i);
    agent.state(R"({"item":"123e4567-e89b-12d3-a456-4266141740)" + n +
                R"(","from":"2026-01-01T10:00:)" + n + R"(Z","status":"processed without error"})");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RightWork, identity_of_members_with_capitals_or_that_are_absent) {
  Agent agent({.tools = {{"read", {.identity = {"fileName"}}}}});
  for (int i = 0; i < 20; ++i) {
    agent.call("read", R"({"fileName":"f)" + std::to_string(i) + "\"}", "ok");
    agent.call("read", R"({"path":"g)" + std::to_string(i) + "\"}", "ok");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RightWork, calls_that_are_reported_without_content) {
  Agent agent;
  Agent discreet;
  discreet.content = ContentLevel::none;
  for (int i = 0; i < 50; ++i) {
    agent.call("bash", "", "");
    discreet.call("bash", "make " + std::to_string(i), "done");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
  EXPECT_FALSE(discreet.ever(HealthKind::suspect)) << discreet.story();
}

TEST(RightWork, calls_that_do_not_count_after_a_suspicion) {
  Agent round;
  Agent others({.tools = {{"poll", {.use = ToolUse::poll}}, {"think", {.use = ToolUse::exempt}}}});
  for (auto* agent : {&round, &others}) {
    for (int i = 0; i < 3; ++i) agent->call("read", "a", "b");
    ASSERT_EQ(agent->health(), HealthKind::suspect);
  }
  for (int i = 0; i < 6; ++i) round.begin("get", std::to_string(i), std::to_string(i));
  for (int i = 0; i < 6; ++i) round.done("get", "new " + std::to_string(i), std::to_string(i));
  EXPECT_FALSE(round.ever_confirmed()) << round.story();
  others.call("poll", "{}", "pending");
  const auto further = others.judged.history.notes->suspicion.further;
  for (int i = 0; i < 20; ++i) {
    others.call("think", "{}", "hm").call("poll", "{}", "pending");
    others.fail("ask", "{}", "HTTP 429 Too Many Requests");
  }
  EXPECT_EQ(others.judged.history.notes->suspicion.further, further);
  EXPECT_FALSE(others.ever_confirmed()) << others.story();
}

TEST(RightWork, batches_that_run_in_parallel) {
  Agent agent;
  for (int i = 0; i < 30; ++i) {
    for (const char* id : {"x", "y"}) {
      agent.begin("delete",
                  R"({"path":"/data/customers/region/file_)" + std::to_string(i) + id +
                      R"(.csv","mode":"strict"})",
                  id);
    }
    for (const char* id : {"y", "x"}) agent.done("delete", long_text("deletion"), id);
  }
  Agent staggered;
  staggered.begin("get", R"({"id":0})", "0");
  for (int i = 1; i < 30; ++i) {
    staggered.begin("get", R"({"id":)" + std::to_string(i) + "}", std::to_string(i));
    staggered.done("get", long_text("an answer"), std::to_string(i - 1));
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
  EXPECT_FALSE(staggered.ever(HealthKind::suspect)) << staggered.story();
}

TEST(RightWork, batches_of_commands) {
  Agent tests;
  Agent lint;
  for (int i = 0; i < 7; ++i) {
    const auto n = std::to_string(i);
    tests.fail("bash", R"({"command":"python -m pytest tests/test_)" + n + R"(.py -q"})",
               "exit code 1");
    lint.call("bash", "eslint --fix src/components/file" + n + ".tsx", long_text("linting"));
  }
  EXPECT_FALSE(tests.ever_confirmed()) << tests.story();
  EXPECT_FALSE(lint.ever(HealthKind::suspect)) << lint.story();
}

TEST(RightWork, output_of_programs_that_is_reported_as_messages) {
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "warning: this function is deprecated and will be removed\n";
  for (const char* role :
       {"terminal", "console", "stdout", "stderr", "environment", "observation", "tool", "error"}) {
    Agent alone;
    Agent both;
    for (int i = 0; i < 20; ++i) {
      alone.message(lines, role);
      both.message("Now I run step " + std::to_string(i), "assistant").message(lines, role);
    }
    EXPECT_FALSE(alone.ever(HealthKind::suspect)) << role << ": " << alone.story();
    EXPECT_FALSE(both.ever(HealthKind::suspect)) << role << ": " << both.story();
  }
}

/// A session of a terminal that reports plain messages, in a role that nobody knows.
TEST(RightWork, output_of_programs_whose_role_is_not_known) {
  std::string build;
  for (int i = 0; i < 60; ++i)
    build += "src/lib/module.c:12:5: warning: unused variable 'n' [-Wunused-variable]\n";
  for (const char* role : {"session", "transcript", "assistant", ""}) {
    Agent agent;
    for (int i = 0; i < 20; ++i) {
      agent.message("$ make target_" + std::to_string(i) + "\n" + build, role);
      agent.message("$ ls\nmodule.c  module.o  a.out  README.md\n", role);
    }
    EXPECT_FALSE(agent.ever(HealthKind::suspect)) << role << ": " << agent.story();
  }
}

TEST(RightWork, messages_that_go_on_to_say_something_new) {
  Agent agent;
  const std::vector<std::string> parts{"river",  "forest", "castle", "winter", "harbour", "garden",
                                       "bridge", "letter", "wagon",  "miller", "candle",  "sailor"};
  for (const auto& a : parts) {
    std::string text;
    for (const auto& b : parts)
      text += "Beyond " + a + b + " stood old " + b + a + " while " + a + " met " + b + ". ";
    agent.message(text);
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RightWork, second_pass_over_many_files) {
  for (const int files : {9, 15, 19, 30, 60}) {
    Agent agent;
    for (int pass = 0; pass < 2; ++pass) {
      for (int file = 0; file < files; ++file) {
        const auto name = "src/part" + std::to_string(file) + ".cpp";
        agent.call("read", R"({"path":")" + name + "\"}", long_text(name));
      }
    }
    EXPECT_FALSE(agent.ever(HealthKind::suspect)) << files << ": " << agent.story();
  }
}

TEST(RightWork, searches_for_other_things_in_the_same_words) {
  Agent agent;
  for (const char* city : {"Berlin", "Paris", "Rome", "Oslo", "Madrid", "Vienna", "Prague", "Bern"})
    agent.call("search", std::string(R"({"query":"population of )") + city + R"( today"})",
               std::string(city) + " has many inhabitants");
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RightWork, same_commands_around_new_work) {
  for (const int news : {1, 2}) {
    Agent agent;
    for (int lap = 0; lap < 40; ++lap) {
      agent.call("git", "add -A", "").call("git", "push", "Everything up-to-date");
      for (int i = 0; i < news; ++i) {
        agent.call("edit", "patch " + std::to_string(lap) + " " + std::to_string(i), "edited");
      }
    }
    EXPECT_FALSE(agent.ever_confirmed()) << news << ": " << agent.story();
  }
}

TEST(RightWork, one_slip_into_a_repetition) {
  Agent agent;
  for (int slip = 0; slip < 2; ++slip) {
    agent.kind(ReportKind::text_repetition);
    for (int turn = 0; turn < 5; ++turn) {
      agent.message("question " + std::to_string(turn), "user");
      agent.message("answer " + std::to_string(turn));
    }
    EXPECT_EQ(agent.health(), HealthKind::starting) << agent.story();
  }
  EXPECT_FALSE(agent.ever_confirmed());
}

TEST(RightWork, whole_answers_after_an_alarm_about_a_repetition) {
  Agent agent;
  agent.kind(ReportKind::text_repetition).kind(ReportKind::text_repetition);
  ASSERT_EQ(agent.health(), HealthKind::looping);
  for (int turn = 0; turn < 8; ++turn) {
    agent.message("q" + std::to_string(turn), "user").message("a" + std::to_string(turn));
  }
  EXPECT_EQ(agent.health(), HealthKind::starting) << agent.story();
}

TEST(RightWork, commands_that_begin_with_a_bracket) {
  Agent agent;
  for (int i = 0; i < 9; ++i) {
    const auto n = std::to_string(i);
    agent.fail("bash", "[ -f file" + n + " ] && cat file" + n,
               "line " + n + ": no file of that name");
  }
  EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
}

TEST(RightWork, deadlines_without_end) {
  Agent agent;
  Report call{.kind = ReportKind::tool_call, .name = "train", .content = "{}"};
  call.deadline = Millis::max();
  call.expect_quiet = Millis::max();
  agent.say(std::move(call)).pass(1h);
  EXPECT_EQ(agent.health(), HealthKind::starting) << agent.story();
}

TEST(RightWork, idleness_after_a_wait) {
  Agent agent;
  agent.state(R"({"n":1})").loop().kind(ReportKind::wait, "input").state(R"({"n":2})");
  agent.kind(ReportKind::idle);
  for (int i = 0; i < 9; ++i) agent.loop();
  EXPECT_EQ(agent.health(), HealthKind::idle) << agent.story();
}

TEST(RightWork, opinions_count_by_what_was_said_surely_and_in_time) {
  Agent agent;
  for (int i = 0; i < 3; ++i) agent.call("read", "a", "b");
  EXPECT_EQ(agent.opinion(Verdict::blocked, 0.3).opinion(Verdict::progressing, 0.95).health(),
            HealthKind::suspect);
  const Seq known = agent.seq;
  agent.kind(ReportKind::user_input);
  for (int i = 0; i < 3; ++i) agent.call("read", "c", "d");
  EXPECT_EQ(agent.opinion(Verdict::looping, 0.99, known).health(), HealthKind::suspect);
}

}  // namespace
}  // namespace watchdog
