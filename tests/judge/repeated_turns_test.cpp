#include <gtest/gtest.h>

#include <string>

#include "support/agent.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

using test::Agent;

/// Once more without work in between, and what it is called.
struct TurnCase {
  const char* name;
  void (*once)(Agent&);
  const char* reason;
};

class RepeatedTurns : public testing::TestWithParam<TurnCase> {};

Agent& read(Agent& run, const std::string& what) {
  return run.call("Read", R"({"file_path":")" + what + R"("})", "the text of " + what);
}

const TurnCase turn_cases[] = {
    {"refused_stops",
     [](Agent& run) {
       run.kind(ReportKind::resume, std::string(resume_reports::stop_refused));
       run.message("Done, in words of its own " + std::to_string(run.seq));
       run.kind(ReportKind::idle);
     },
     "hook refused"},
    {"equal_requests",
     [](Agent& run) { run.begin("book", "{}").kind(ReportKind::retry, std::string(asked_again)); },
     "same request"},
    {"failed_turns",
     [](Agent& run) {
       run.say({.kind = ReportKind::user_input, .content = "Go on " + std::to_string(run.seq)});
       run.say({.kind = ReportKind::idle,
                .name = std::string(idle_reports::failed),
                .content = "HTTP 400: the image is too large"});
     },
     "same error"},
    {"compactions",
     [](Agent& run) {
       run.kind(ReportKind::compaction);
       read(run, "plan");
       read(run, "part " + std::to_string(run.seq));
     },
     "compaction"},
};

TEST_P(RepeatedTurns, are_suspect_at_five_and_looping_at_eight) {
  Agent run;
  run.say({.kind = ReportKind::user_input, .content = "Begin"});
  read(run, "plan");
  int suspect_at = 0;
  int looping_at = 0;
  for (int time = 1; time <= 12; ++time) {
    GetParam().once(run);
    if (suspect_at == 0 && run.health() == HealthKind::suspect) suspect_at = time;
    if (looping_at == 0 && run.health() == HealthKind::looping) looping_at = time;
  }
  EXPECT_EQ(suspect_at, 5) << run.story();
  EXPECT_EQ(looping_at, 8) << run.story();
  EXPECT_NE(run.changes.back().reason.find(GetParam().reason), std::string::npos) << run.story();
}

TEST_P(RepeatedTurns, are_none_with_work_in_between) {
  Agent run;
  for (int time = 1; time <= 12; ++time) {
    GetParam().once(run);
    run.call("Edit", R"({"file_path":"a","new_string":")" + std::to_string(time) + R"("})", "ok");
  }
  EXPECT_FALSE(run.ever(HealthKind::suspect)) << run.story();
  EXPECT_FALSE(run.ever_confirmed()) << run.story();
}

INSTANTIATE_TEST_SUITE_P(Table, RepeatedTurns, testing::ValuesIn(turn_cases),
                         [](const auto& row) { return row.param.name; });

TEST(RepeatedTurns, of_retries_after_errors_are_none) {
  Agent run;
  run.say({.kind = ReportKind::user_input, .content = "Begin"});
  for (int time = 1; time <= 12; ++time) run.kind(ReportKind::retry);
  EXPECT_FALSE(run.ever_confirmed()) << run.story();
}

TEST(RepeatedTurns, end_with_a_prompt) {
  Agent run;
  for (int time = 1; time <= 9; ++time) turn_cases[0].once(run);
  EXPECT_EQ(run.health(), HealthKind::looping);
  run.say({.kind = ReportKind::user_input, .content = "Leave it"});
  run.kind(ReportKind::idle);
  EXPECT_EQ(run.health(), HealthKind::idle) << run.story();
}

TEST(Waits, are_no_loop_however_often_an_agent_looks) {
  for (const auto& [tool, arguments] :
       {std::pair{"Bash", R"({"command":"sleep 240; kilnctl show 7"})"},
        {"TaskOutput", R"({"task_id":"b1","block":true})"}}) {
    Agent run;
    for (int look = 0; look < 200; ++look) {
      run.begin(tool, arguments).pass(Millis{60'000});
      run.done(tool, "it heats");
    }
    EXPECT_FALSE(run.ever(HealthKind::suspect)) << run.story();
    EXPECT_FALSE(run.ever_confirmed()) << run.story();
    EXPECT_EQ(run.health(), HealthKind::progressing);
    EXPECT_NE(reason_of(run.judged.health, run.judged.history, {}, run.now).find("aits with"),
              std::string::npos);
  }
}

TEST(Waits, are_a_loop_if_nobody_waits) {
  Agent run;
  for (int look = 0; look < 60; ++look) {
    run.begin("BashOutput", R"({"bash_id":"b1"})").pass(Millis{100});
    run.done("BashOutput", "it heats");
  }
  EXPECT_TRUE(run.ever_confirmed()) << run.story();
}

}  // namespace
}  // namespace watchdog
