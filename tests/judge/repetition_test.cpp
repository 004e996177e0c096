#include "watchdog/repetition.h"

#include <gtest/gtest.h>

#include <random>

#include "codec/facts.h"
#include "support/agent.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using test::Agent;
using test::long_text;
using namespace std::chrono_literals;

// --- Patterns by name, at their counts.

struct RuleCase {
  Pattern pattern;
  int suspect_at;  ///< The how manieth time makes it suspect; 0: not before it is confirmed.
  int stuck_at;    ///< And looping; 0: never.
  void (*once)(Agent&, int);
};

class PatternTable : public testing::TestWithParam<RuleCase> {};

TEST_P(PatternTable, is_named_and_judged_at_its_counts) {
  const auto& rule_case = GetParam();
  Agent run;
  run.state(R"({"plan":1})");
  int suspect_at = 0;
  int stuck_at = 0;
  for (int time = 1; time <= 40 && stuck_at == 0; ++time) {
    rule_case.once(run, time);
    if (suspect_at == 0 && run.health() == HealthKind::suspect) {
      suspect_at = time;
      EXPECT_EQ(name_of(run.pattern()), name_of(rule_case.pattern));
    }
    if (run.ever_confirmed()) {
      stuck_at = time;
      EXPECT_EQ(name_of(run.pattern()), name_of(rule_case.pattern)) << run.story();
    }
  }
  EXPECT_EQ(suspect_at, rule_case.suspect_at) << run.story();
  EXPECT_EQ(stuck_at, rule_case.stuck_at) << run.story();
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, PatternTable,
    testing::Values(
        RuleCase{Pattern::same_call, 3, 5,
                 [](Agent& run, int) { run.call("read", R"({"path":"a"})", "the same"); }},
        RuleCase{Pattern::same_failing_call, 3, 5,
                 [](Agent& run, int time) {
                   run.fail("make", R"({"target":"all"})", "error " + std::to_string(time));
                 }},
        RuleCase{Pattern::same_error, 5, 8,
                 [](Agent& run, int time) {
                   run.fail("open", R"({"path":")" + std::to_string(time) + R"("})",
                            "no such file");
                 }},
        RuleCase{Pattern::invalid_calls, 3, 8,
                 [](Agent& run, int time) {
                   run.fail("open", R"({"path": )" + std::to_string(time * time),
                            "arguments are no JSON, mistake " + std::to_string(time));
                 }},
        RuleCase{Pattern::same_message, 3, 5,
                 [](Agent& run, int) { run.message("Now I will go on."); }},
        RuleCase{Pattern::messages_only, 6, 0,
                 [](Agent& run, int time) { run.message("Thought " + std::to_string(time)); }},
        RuleCase{Pattern::repeated_text, 1, 2,
                 [](Agent& run, int) { run.kind(ReportKind::text_repetition); }},
        RuleCase{Pattern::recurring_states, 3, 4,
                 [](Agent& run, int) { run.state("{\"text\":\"" + long_text("a state") + "\"}"); }},
        RuleCase{Pattern::repeated_compactions, 3, 10,
                 [](Agent& run, int) { run.kind(ReportKind::compaction); }}),
    [](const auto& row) { return std::string(name_of(row.param.pattern)); });

TEST(Packed, takes_a_pointer_and_copies_are_their_own) {
  static_assert(sizeof(Packed<Marks::Field>) == sizeof(void*));
  const std::vector<std::uint32_t> items{3, 1, 4};
  const Packed<std::uint32_t> packed(items);
  auto copy = packed;
  *copy.begin() = 7;
  EXPECT_TRUE(std::equal(packed.begin(), packed.end(), items.begin(), items.end()));
  EXPECT_EQ(std::vector(copy.begin(), copy.end()), (std::vector<std::uint32_t>{7, 1, 4}));
  copy = {};
  EXPECT_TRUE(copy.empty());
  EXPECT_EQ(copy.size(), 0U);
  EXPECT_EQ(copy.begin(), copy.end());

  const std::string_view odd("a\0b", 3);
  const PackedText text(odd);
  EXPECT_EQ(text, odd);
  EXPECT_EQ(PackedText(text).str(), odd);
  EXPECT_TRUE(PackedText("").empty());
  EXPECT_EQ(PackedText(), "");
}

TEST(SourceNotes, keeps_one_origin_in_place_and_all_in_order) {
  SourceNotes notes;
  EXPECT_TRUE(notes.empty());
  notes.note(ReportOrigin::hooks).reports = 2;
  const auto* begin = reinterpret_cast<const std::byte*>(&notes);         // NOLINT: where it lies
  const auto* first = reinterpret_cast<const std::byte*>(notes.begin());  // NOLINT
  EXPECT_TRUE(first >= begin && first < begin + sizeof notes) << "no block";
  notes.note(ReportOrigin::agent).reports = 1;
  notes.note(ReportOrigin::hooks).reports += 1;
  notes.note(ReportOrigin::unknown).reports = 5;
  ASSERT_EQ(notes.size(), 3U);
  EXPECT_EQ(notes[0].origin, ReportOrigin::hooks);
  EXPECT_EQ(notes[0].reports, 3);
  EXPECT_EQ(notes[1].origin, ReportOrigin::agent);
  EXPECT_EQ(notes[2].origin, ReportOrigin::unknown);
}

TEST(Repetition, cycle_of_rounds_is_named_a_cycle) {
  Agent run({.patterns =
                 [] {
                   auto bounds = Policy::default_patterns();
                   bounds[static_cast<std::size_t>(Pattern::repeated_calls)] = {100, 100};
                   return bounds;
                 }(),
             .repeated_of_20 = 19});
  for (int lap = 0; lap < 4 && !run.ever_confirmed(); ++lap) {
    for (const char* part : {"a", "b", "c"}) run.call("read", part, part);
    EXPECT_TRUE(lap != 2 || run.health() == HealthKind::suspect);
  }
  EXPECT_EQ(run.health(), HealthKind::looping);
  EXPECT_EQ(name_of(run.pattern()), "R3");
}

TEST(Repetition, lap_of_a_cycle_may_miss_an_element) {
  Cycles cycles;
  Seq seq = 0;
  for (const char* lap : {"abcd", "abcd", "acd", "abcd", "abd"}) {
    for (const char* letter = lap; *letter != 0; ++letter) {
      cycles.add(static_cast<std::uint64_t>(*letter), ++seq, 2, Cycle::period_max);
    }
  }
  ASSERT_NE(cycles.longest(), nullptr);
  EXPECT_EQ(cycles.longest()->laps, 5);
}

TEST(Repetition, rounds_that_bring_nothing_new_are_named) {
  auto bounds = Policy::default_patterns();
  for (const auto pattern :
       {Pattern::same_call, Pattern::cycle_of_calls, Pattern::repeated_calls}) {
    bounds[static_cast<std::size_t>(pattern)] = {1'000, 1'000};
  }
  Agent run({.patterns = bounds, .repeated_of_20 = 19});
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const auto part = std::to_string(i < 20 ? i : static_cast<int>(random() % 20));
    run.call("read", part, "part " + part);
  }
  EXPECT_EQ(name_of(run.pattern()), "R11");
  EXPECT_EQ(run.health(), HealthKind::stuck);
}

TEST(Repetition, third_pass_over_many_files_is_a_loop) {
  Agent run;
  for (int i = 0; i < 45; ++i) {
    const auto name = "src/part" + std::to_string(i % 15) + ".cpp";
    run.call("read", R"({"path":")" + name + "\"}", long_text(name));
    ASSERT_TRUE(i >= 30 || !run.ever(HealthKind::suspect)) << run.story();
  }
  EXPECT_EQ(run.health(), HealthKind::looping) << run.story();
  EXPECT_LE(run.confirmed_at, 36);
}

// --- Signs that are too weak to confirm a loop.

/// Requests in words for one thing, each in other words.
std::string paraphrase(int time) {
  const std::vector<std::string> forms{
      "when did the apple stock price first go above fifty dollars",
      "first year the apple stock price was above fifty dollars",
      "apple stock price history first time above fifty dollars",
      "year when the price of apple stock went above fifty dollars",
      "find first date apple stock price passed fifty dollars"};
  return forms[static_cast<std::size_t>(time) % forms.size()] + " source " +
         std::string(static_cast<std::size_t>(time / 5 + 1), 'x');
}

/// A message that says in other order what was said before.
std::string round_again(int time) {
  const std::vector<std::string> parts{
      "The page did not show the price that we need. ", "We should ask the surfer to look again. ",
      "It is best to try the history of the stock. ", "The request is not satisfied yet. "};
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += parts[(i * 3 + static_cast<std::size_t>(time)) % parts.size()];
  return text + "Attempt " + std::to_string(time) + ".";
}

void ask_again(Agent& run, int time) {
  run.call("search", R"({"query":")" + paraphrase(time) + "\"}",
           "answer " + std::to_string(time * 7'919));
}
void fail_again(Agent& run, int time) {
  for (int edit = 0; edit < 3; ++edit) {
    run.call("edit", R"({"patch":")" + std::to_string(100 * time + edit) + " changed line\"}",
             "edited " + std::to_string(100 * time + edit));
  }
  run.fail("bash", R"({"command":"run-tests"})", long_text("59 tests fail"));
}
void say_again(Agent& run, int time) {
  run.message(round_again(time), "Orchestrator");
  run.call("ask", R"({"id":)" + std::to_string(time) + "}", "reply " + std::to_string(time));
}

struct GradedCase {
  Pattern pattern;
  void (*once)(Agent&, int);
};
class Graded : public testing::TestWithParam<GradedCase> {};

TEST_P(Graded, stays_suspect_until_a_model_confirms_it) {
  Agent run;
  for (int time = 0; time < 60; ++time) GetParam().once(run, time);
  EXPECT_EQ(run.health(), HealthKind::suspect) << run.story();
  EXPECT_EQ(name_of(run.pattern()), name_of(GetParam().pattern));
  EXPECT_FALSE(run.ever_confirmed()) << run.story();
  run.opinion(Verdict::looping, 0.95);
  EXPECT_EQ(run.health(), HealthKind::looping) << run.story();
  EXPECT_EQ(name_of(run.pattern()), name_of(GetParam().pattern));
  for (const char* part : {"first", "second"})
    run.state(std::string(R"({"answer":"found the )") + part + R"( one, and it was stored"})");
  EXPECT_EQ(run.health(), HealthKind::progressing) << "new states take it back: " << run.story();
}

TEST_P(Graded, survives_its_snapshot) {
  Agent run;
  for (int time = 0; time < 60; ++time) GetParam().once(run, time);
  Case read;
  ASSERT_TRUE(read_snapshot(read, snapshot_of(run.judged)));
  EXPECT_EQ(snapshot_of(read), snapshot_of(run.judged));
  EXPECT_EQ(name_of(judge(read.history, *read.policy, run.now).pattern),
            name_of(GetParam().pattern));
}

INSTANTIATE_TEST_SUITE_P(Signs, Graded,
                         testing::Values(GradedCase{Pattern::restated_text, say_again},
                                         GradedCase{Pattern::same_failure, fail_again},
                                         GradedCase{Pattern::rephrased_calls, ask_again}),
                         [](const auto& row) { return std::string(name_of(row.param.pattern)); });

TEST(Repetition, failure_that_changes_is_work) {
  Agent run;
  for (int time = 0; time < 20; ++time) {
    run.call("edit", R"({"patch":")" + std::to_string(time) + " changed line\"}", "edited");
    run.call("look", R"({"at":)" + std::to_string(time) + "}", "seen " + std::to_string(time));
    run.fail("bash", R"({"command":"run-tests"})", long_text(std::to_string(59 - time) + " fail"));
  }
  EXPECT_FALSE(run.ever(HealthKind::suspect)) << run.story();
}

TEST(Repetition, slow_circle_with_news_between_is_suspect) {
  Agent run;
  for (int i = 0; i < 160; ++i) {
    const auto part = i % 9 == 8 ? "new " + std::to_string(i) : std::to_string(i % 40);
    run.call("read", part, "part " + part);
  }
  EXPECT_TRUE(run.ever(HealthKind::suspect)) << run.story();
}

TEST(Repetition, near_repetition_counts_like_repetition) {
  Agent run;
  for (int i = 1; i <= 4; ++i) {
    run.call("write_fix",
             R"({"patch":"if (node == null) { return false; } // attempt number )" +
                 std::to_string(i) +
                 R"( of the same idea, with a comment that says in many words why it is going to )"
                 R"(work this time although it did not do so when it was tried before"})",
             long_text("59 tests fail"));
  }
  EXPECT_EQ(run.health(), HealthKind::looping) << run.story();
  EXPECT_EQ(name_of(run.pattern()), "R4");
}

// --- What takes back a judgement.

TEST(Repetition, new_state_clears_a_suspicion) {
  Agent run;
  run.state(R"({"n":1})");
  for (int i = 0; i < 3; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::suspect);
  EXPECT_EQ(run.state(R"({"n":2})").health(), HealthKind::progressing);
}

TEST(Repetition, alarm_is_kept_until_two_new_states) {
  Agent run;
  for (int i = 0; i < 5; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::looping);
  EXPECT_EQ(run.state(R"({"n":1})").health(), HealthKind::looping);
  EXPECT_EQ(run.state(R"({"n":2})").health(), HealthKind::progressing);
}

TEST(Repetition, four_new_calls_are_worth_two_new_states) {
  Agent run;
  for (int i = 0; i < 5; ++i) run.call("read", "a", "b");
  for (int i = 0; i < 3; ++i) run.call("read", "new " + std::to_string(i), std::to_string(i));
  ASSERT_EQ(run.health(), HealthKind::looping);
  EXPECT_EQ(run.call("read", "another", "thing").health(), HealthKind::progressing);
}

TEST(Repetition, repeat_in_between_restarts_the_recovery) {
  Agent run;
  for (int i = 0; i < 5; ++i) run.call("read", "a", "b");
  for (int i = 0; i < 3; ++i) run.call("read", "new " + std::to_string(i), std::to_string(i));
  run.call("read", "a", "b");
  EXPECT_EQ(run.call("read", "another", "thing").health(), HealthKind::looping);
}

TEST(Repetition, users_word_clears_it_at_once) {
  Agent run;
  for (int i = 0; i < 5; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::looping);
  EXPECT_EQ(run.kind(ReportKind::user_input).health(), HealthKind::progressing);
}

TEST(Repetition, suspicion_without_anything_new_is_confirmed) {
  auto bounds = Policy::default_patterns();
  bounds[static_cast<std::size_t>(Pattern::same_call)] = {3, 1'000};
  bounds[static_cast<std::size_t>(Pattern::repeated_calls)] = {1'000, 1'000};
  Agent run({.patterns = bounds, .repeated_of_20 = 19});
  for (int i = 0; i < 3; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::suspect);
  for (int i = 0; i < 4; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::suspect);
  EXPECT_EQ(run.call("read", "a", "b").health(), HealthKind::looping);
}

TEST(Repetition, time_alone_never_confirms) {
  Agent run;
  for (int i = 0; i < 3; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::suspect);
  EXPECT_EQ(run.pass(24h * 365).health(), HealthKind::suspect);
}

// --- What models and the agent think.

TEST(Opinions, sure_one_confirms_a_repetition) {
  Agent run;
  for (int i = 0; i < 3; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::suspect);
  EXPECT_EQ(run.opinion(Verdict::looping, 0.95).health(), HealthKind::looping);
}

TEST(Opinions, alone_neither_confirm_nor_refute) {
  Agent run;
  run.call("read", "a", "b");
  EXPECT_EQ(run.opinion(Verdict::looping, 0.99).opinion(Verdict::looping, 0.99).health(),
            HealthKind::progressing);
  for (int i = 0; i < 4; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::looping);
  EXPECT_EQ(run.opinion(Verdict::progressing, 0.99).health(), HealthKind::looping);
}

TEST(Opinions, unsure_one_needs_a_second_or_another_sign) {
  Agent run;
  run.state(R"({"n":1})").helper().helper();
  for (int i = 0; i < 400; ++i) run.pass(10s).helper();
  ASSERT_EQ(run.health(), HealthKind::suspect) << run.story();
  EXPECT_EQ(name_of(run.pattern()), "F3");
  EXPECT_EQ(run.opinion(Verdict::looping, std::nullopt).health(), HealthKind::suspect);
  EXPECT_EQ(run.opinion(Verdict::looping, std::nullopt).health(), HealthKind::suspect)
      << "one vote a source";
  EXPECT_EQ(run.opinion(Verdict::looping, std::nullopt, 0, "self").health(), HealthKind::stuck);
}

TEST(Opinions, blocked_needs_a_suspicion_and_to_be_said_surely_or_twice) {
  Agent run;
  for (int i = 0; i < 3; ++i) run.call("read", "a", "b");
  EXPECT_EQ(run.opinion(Verdict::blocked, 0.5).health(), HealthKind::suspect);
  EXPECT_EQ(run.opinion(Verdict::blocked, 0.5).health(), HealthKind::blocked);
  EXPECT_EQ(name_of(run.pattern()), "F6");
  EXPECT_EQ(run.state(R"({"n":2})").health(), HealthKind::progressing);
}

TEST(Opinions, are_discarded_once_something_new_happened) {
  Agent run;
  run.state(R"({"n":1})");
  const Seq seen = run.seq;
  run.state(R"({"n":2})");
  for (int i = 0; i < 3; ++i) run.call("read", "a", "b");
  ASSERT_EQ(run.health(), HealthKind::suspect);
  EXPECT_EQ(run.opinion(Verdict::looping, 0.99, seen).health(), HealthKind::suspect);
  EXPECT_EQ(run.opinion(Verdict::looping, 0.99, run.seq).health(), HealthKind::looping);
}

// --- What tools are.

TEST(Tools, poll_may_get_the_same_answer_for_ever) {
  Agent run({.tools = {{"status", {.use = ToolUse::poll}}}});
  for (int i = 0; i < 200; ++i) run.call("status", R"({"job":7})", "pending");
  EXPECT_FALSE(run.ever_confirmed()) << run.story();
  EXPECT_FALSE(run.ever(HealthKind::suspect));
}

TEST(Tools, paging_counts_half) {
  Agent plain;
  auto bounds = Policy::default_patterns();
  bounds[static_cast<std::size_t>(Pattern::same_call)] = {100, 100};
  Agent paging({.patterns = bounds, .tools = {{"next_page", {.use = ToolUse::paging}}}});
  for (int i = 0; i < 4; ++i) {
    plain.call("next_page", "{}", "[]");
    paging.call("next_page", "{}", "[]");
  }
  EXPECT_TRUE(plain.ever_confirmed());
  EXPECT_FALSE(paging.ever_confirmed());
  for (int i = 0; i < 10; ++i) paging.call("next_page", "{}", "[]");
  EXPECT_TRUE(paging.ever_confirmed()) << "half is not nothing";
}

TEST(Tools, exempt_takes_no_part) {
  Agent run({.tools = {{"think", {.use = ToolUse::exempt}}}});
  for (int i = 0; i < 100; ++i) run.call("think", "{}", "hm");
  EXPECT_EQ(run.health(), HealthKind::progressing);
  EXPECT_FALSE(run.judged.history.repetition->known_steps.digests.size() > 0);
}

TEST(Tools, identity_may_be_some_members_of_the_arguments) {
  Agent run({.tools = {{"search", {.identity = {"query"}}}}});
  for (int i = 0; i < 4; ++i) {
    run.call("search", R"({"query":"loops","request":)" + std::to_string(i) + "}", "nothing found");
  }
  EXPECT_TRUE(run.ever_confirmed()) << run.story();
}

TEST(Tools, unreachable_services_are_no_loop) {
  Agent run;
  for (int i = 0; i < 50; ++i) run.fail("ask", "{}", "HTTP 429 Too Many Requests");
  EXPECT_EQ(run.health(), HealthKind::progressing) << run.story();
}

TEST(Rounds, answer_asked_for_again_rolls_counts_back) {
  Agent run;
  run.call("read", "a", "b");
  for (int i = 0; i < 20; ++i) run.message("The answer begins").kind(ReportKind::retry);
  EXPECT_FALSE(run.ever(HealthKind::suspect)) << run.story();
}

TEST(Rounds, without_results_stay_a_suspicion) {
  Agent run;
  for (int i = 0; i < 30; ++i) run.begin("read", "{}").loop().loop();
  EXPECT_FALSE(run.ever(HealthKind::looping)) << run.story();
}

TEST(Rounds, results_whose_calls_are_unknown_confirm_nothing) {
  Agent agent;
  for (int i = 0; i < 40; ++i) agent.done("terminal", long_text("the same"));
  EXPECT_FALSE(agent.ever_confirmed()) << agent.story();
  EXPECT_TRUE(agent.ever(HealthKind::suspect));
}

TEST(Rounds, call_that_never_gets_its_result_does_not_hide_the_others) {
  Agent agent;
  agent.begin("lost", "{}", "id 0");
  for (int i = 0; i < 6; ++i) agent.call("read", "a", "b");
  EXPECT_EQ(agent.health(), HealthKind::looping) << agent.story();
  Agent frozen;
  frozen.begin("lost", "{}", "id 0");
  for (int i = 0; i < 8; ++i) frozen.call("read", std::to_string(i), std::to_string(i));
  EXPECT_EQ(frozen.pass(1h).health(), HealthKind::suspect) << "it went on without that call";
  Agent waiting;
  waiting.begin("train", "{}").pass(1s).state(R"({"epoch":1})").state(R"({"epoch":2})");
  EXPECT_EQ(waiting.pass(24h).health(), HealthKind::slow) << "the call still runs";
}

// --- Arguments and results.

TEST(Marks, arguments_compare_by_value) {
  const auto identity = [](const std::string& args) {
    Report report{.kind = ReportKind::tool_call, .name = "t", .content = args};
    mark(report);
    return std::get<Marks>(report.detail).identity;
  };
  EXPECT_EQ(identity(R"({"a":1,"b":[1,2]})"), identity("{\"b\" : [1, 2.0],\n\"a\": 1}"));
  EXPECT_EQ(identity(R"({"a":"Some  Text "})"), identity(R"({"a":"some text"})"));
  EXPECT_EQ(identity(R"({"a":"\u00e9"})"), identity("{\"a\":\"\xC3\xA9\"}"));
  EXPECT_EQ(identity("make  ALL"), identity("make all"));
  EXPECT_NE(identity(R"({"a":[1,2]})"), identity(R"({"a":[2,1]})"));
  EXPECT_NE(identity(R"({"a":"1"})"), identity(R"({"a":1})"));
  EXPECT_NE(identity(R"({"a":{"b":1}})"), identity(R"({"b":{"a":1}})"));
  EXPECT_NE(identity(R"({"a":null})"), identity("{}"));
  EXPECT_NE(identity(R"({"a":9007199254740993})"), identity(R"({"a":9007199254740992})"));
}

TEST(Marks, results_compare_without_what_varies_by_itself) {
  const auto identity = [](const std::string& text) {
    Report report{.kind = ReportKind::tool_result, .name = "t", .content = text};
    mark(report);
    return std::get<Marks>(report.detail).identity;
  };
  EXPECT_EQ(identity("at 2026-01-02T03:04:05.678Z done"), identity("at 2027-11-12T13:14:15Z done"));
  EXPECT_EQ(identity("[12:00:01] pid 17: ok in 0.53s"),
            identity("[23:59:59] pid 4711: ok in 12 ms"));
  EXPECT_EQ(identity("id 123e4567-e89b-12d3-a456-426614174000 at 0x7ffe12"),
            identity("id 00000000-0000-0000-0000-000000000000 at 0xdeadbeef"));
  EXPECT_EQ(identity("\x1b[31mred\x1b[0m  text\n"), identity("red text"));
  EXPECT_NE(identity("59 failed"), identity("58 failed"));
  EXPECT_NE(identity("line 12"), identity("line 13"));
  EXPECT_NE(identity("ok"), identity("no"));
}

TEST(Marks, survive_being_stored) {
  Report report{.kind = ReportKind::tool_call,
                .name = "t",
                .content = R"({"path":"/tmp/x","text":"one two three","n":4,"list":[1]})"};
  mark(report);
  const auto& marks = std::get<Marks>(report.detail);
  ASSERT_EQ(marks.fields.size(), 4U);
  EXPECT_EQ(decoded_marks(encoded(marks)), marks);
  const auto bytes = encoded(marks);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(decoded_marks(bytes.substr(0, cut)).has_value()) << cut;
  }
}

TEST(Marks, hostile_arguments_are_bounded) {
  const auto marked = [](std::string args) {
    Report report{.kind = ReportKind::tool_call, .name = "t", .content = std::move(args)};
    mark(report);
    return std::get<Marks>(report.detail);
  };
  const std::string deep(10'000, '[');
  EXPECT_NE(marked(deep).identity, 0U);
  EXPECT_TRUE(marked(R"({"a":)").malformed);
  EXPECT_NE(marked(deep + std::string(10'000, ']')).identity, 0U);
  EXPECT_TRUE(marked(R"({"a":NaN})").malformed);
  EXPECT_TRUE(marked("{\"a\":\"\xff\xfe\"}").malformed);
  EXPECT_NE(marked(std::string("\0\xff\x80", 3)).identity, 0U);
  EXPECT_TRUE(marked(R"({"a":1e999})").malformed);
  std::string long_one = R"({"text":")";
  for (int word = 0; long_one.size() < 10'000'000; ++word) long_one += std::to_string(word) + " ";
  const auto marks = marked(long_one + "\"}");
  EXPECT_EQ(marks.shingles.size(), Marks::shingles_max);
  EXPECT_FALSE(marks.malformed);
}

TEST(Marks, content_that_is_not_kept_at_all_leaves_none) {
  Report report{.kind = ReportKind::tool_call, .name = "t", .content = "secret"};
  mark(report);
  seal(report, ContentLevel::none);
  EXPECT_EQ(report.detail.index(), 0U);
}

}  // namespace
}  // namespace watchdog
