// How rules are scored: the peers' rules, the arithmetic, and the command over runs of our own.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "codec/json.h"
#include "score/scoring.h"
#include "support/corpus.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::program;
using test::TempDir;

/// A run as words; each word makes one or two lines:
///   a1 the call a with the result 1    a!1 with the error 1    a the call alone
///   . a message    h a loop heartbeat    E the end
std::vector<TraceLine> lines_of(const std::string& words) {
  std::vector<TraceLine> lines;
  const auto put = [&](const json& object) {
    auto report = report_from_json(object.dump());
    EXPECT_TRUE(report && *report) << object;
    const auto at = static_cast<int>(lines.size());
    lines.push_back({.report = **report, .seq = at, .line = at + 1});
  };
  std::istringstream stream(words);
  int iteration = 0;
  for (std::string word; stream >> word;) {
    if (word == ".") {
      put({{"kind", "message"}, {"name", "assistant"}, {"text", "hm"}});
    } else if (word == "h") {
      put({{"kind", "heartbeat"}, {"source", "loop"}, {"iteration", ++iteration}});
    } else if (word == "E") {
      put({{"kind", "end"}});
    } else {
      const bool failed = word.find('!') != std::string::npos;
      put({{"kind", "tool_call"}, {"name", "f"}, {"args", word.substr(0, 1)}});
      if (word.size() == 1) continue;
      put({{"kind", failed ? "error" : "tool_result"}, {"name", "f"}, {"text", word.substr(1)}});
    }
  }
  return lines;
}

Findings findings_of(const std::string& words) {
  Evaluation evaluation;
  for (auto& line : lines_of(words)) evaluation.fold(std::move(line));
  return evaluation.findings();
}

/// The calls begun when the rule first held; 0: never.
int alarm_of(Rule rule, const std::string& words) {
  const auto findings = findings_of(words);
  const auto& alarm = findings.of(rule).alarm;
  return alarm ? alarm->calls : 0;
}

TEST(ScoreRules, identical_calls_count_in_a_row_whatever_comes_back) {
  EXPECT_EQ(alarm_of(Rule::identical_call3, "a1 a2 a3"), 3);
  EXPECT_EQ(alarm_of(Rule::identical_call3, "a1 . a1 . a"), 3) << "messages do not count";
  EXPECT_EQ(alarm_of(Rule::identical_call3, "a1 a1 b1 a1 a1 b1"), 0);
  EXPECT_EQ(alarm_of(Rule::identical_call5, "b1 a1 a1 a1 a1 a1"), 6);
  EXPECT_EQ(alarm_of(Rule::identical_call5, "a1 a1 a1 a1 b1 a1 a1 a1 a1"), 0);
}

TEST(ScoreRules, exchanges_count_with_their_results) {
  EXPECT_EQ(alarm_of(Rule::identical_exchange4, "a1 a1 a1 a1"), 4);
  EXPECT_EQ(alarm_of(Rule::identical_exchange4, "a1 a1 a1 a"), 0) << "no fourth result";
  EXPECT_EQ(alarm_of(Rule::identical_exchange4, "a1 a1 a2 a1 a1"), 0);
  EXPECT_EQ(alarm_of(Rule::failing_call3, "b1 a!1 a!2 a!3"), 4) << "texts may differ";
  EXPECT_EQ(alarm_of(Rule::failing_call3, "a!1 a1 a!1 a!1"), 0);
  EXPECT_EQ(alarm_of(Rule::failing_call3, "a!1 b!1 a!1"), 0);
}

TEST(ScoreRules, two_in_turn_take_six) {
  EXPECT_EQ(alarm_of(Rule::alternating6, "a1 b2 a1 b2 a1 b2"), 6);
  EXPECT_EQ(alarm_of(Rule::alternating6, "c1 a1 b2 a1 b2 a1 b2"), 7);
  EXPECT_EQ(alarm_of(Rule::alternating6, "a1 b2 a1 b3 a1 b2"), 0) << "a result differs";
  EXPECT_EQ(alarm_of(Rule::alternating6, "a1 b2 c3 a1 b2 c3 a1 b2 c3"), 0);
}

TEST(ScoreRules, calls_of_the_whole_run_count_for_some_peers) {
  EXPECT_EQ(alarm_of(Rule::identical_call4, "a1 a1 a1 a1"), 4);
  EXPECT_EQ(alarm_of(Rule::identical_call4, "a1 a1 a1 b1 a1 a1 a1"), 0);
  EXPECT_EQ(alarm_of(Rule::repeated_call6, "a1 b1 a2 c1 a3 d1 a4 e1 a5 f1 a6"), 11);
  EXPECT_EQ(alarm_of(Rule::repeated_call6, "a1 a1 a1 a1 a1 b1 b1 b1 b1 b1"), 0);
  EXPECT_EQ(alarm_of(Rule::alternating_call6, "a1 b2 a3 b4 a5 b6"), 6) << "whatever comes back";
  EXPECT_EQ(alarm_of(Rule::alternating_call6, "a1 a1 a1 a1 a1 a1"), 0) << "those are not two";
  EXPECT_EQ(alarm_of(Rule::alternating_call6, "a1 b2 a3 c4 a5 b6"), 0);
  std::string words;
  for (const char other : std::string("bcdefghij")) words += std::string("a1 ") + other + "1 ";
  EXPECT_EQ(alarm_of(Rule::repeated_call10, words + "a1"), 19);
  for (int i = 0; i < 30; ++i) words += "z1 y1 ";
  EXPECT_EQ(alarm_of(Rule::repeated_call10, words.substr(0, words.find('z')) + "b1 c1 d1"), 0);
}

TEST(ScoreRules, windows_and_errors_count_with_their_results) {
  EXPECT_EQ(alarm_of(Rule::exchange6_of_10, "a1 b1 a1 c1 a1 d1 a1 a1 e1 a1"), 10);
  EXPECT_EQ(alarm_of(Rule::exchange6_of_10, "a1 a1 a1 a1 a1 a1 a1"), 0) << "not ten yet";
  EXPECT_EQ(alarm_of(Rule::exchange6_of_10, "a1 b1 a2 c1 a1 d1 a1 a1 e1 a1"), 0);
  EXPECT_EQ(alarm_of(Rule::same_error3, "a!1 b!1 c!1"), 3) << "the arguments may differ";
  EXPECT_EQ(alarm_of(Rule::same_error3, "a!1 b!2 c!1"), 0);
  EXPECT_EQ(alarm_of(Rule::same_error3, "a!1 b!1 c1 d!1"), 0);
  EXPECT_EQ(alarm_of(Rule::monologue3, "a1 . . ."), 1);
  EXPECT_EQ(alarm_of(Rule::monologue3, "a1 . . b1 ."), 0);
}

TEST(ScoreRules, any_of_the_four_is_the_earliest_of_them) {
  EXPECT_EQ(alarm_of(Rule::openhands, "a1 a1 a1 a1 b!1 b!1 b!1"), 4);
  EXPECT_EQ(alarm_of(Rule::openhands, "b!1 b!1 b!1 a1 a1 a1 a1"), 3);
  EXPECT_EQ(alarm_of(Rule::openhands, "a1 b2 a1 b2 a1 b2"), 6);
  EXPECT_EQ(alarm_of(Rule::openhands, "a1 . . . b1 b1 b1 b1"), 1);
  EXPECT_EQ(alarm_of(Rule::openhands, "a1 a2 a3 a4 a5"), 0);
}

TEST(ScoreRules, digests_of_the_whole_decide_before_cut_texts) {
  const auto alarm = [](std::vector<std::string> hashes) {
    Evaluation evaluation;
    std::int64_t seq = 0;
    for (auto& hash : hashes) {
      Report call{.kind = ReportKind::tool_call, .name = "f", .content = "cut", .hash = hash};
      evaluation.fold({.report = std::move(call), .seq = seq++});
    }
    return evaluation.findings().of(Rule::identical_call3).alarm.has_value();
  };
  EXPECT_TRUE(alarm({"1", "1", "1"}));
  EXPECT_FALSE(alarm({"1", "2", "3"}));
}

TEST(ScoreEvaluation, results_find_their_calls) {
  Evaluation evaluation;
  const auto put = [&](ReportKind kind, const char* name, const char* call_id, std::int64_t seq) {
    evaluation.fold(
        {.report = {.kind = kind, .name = name, .content = "x", .call_id = call_id}, .seq = seq});
  };
  // Four parallel calls answered in another order, by id.
  for (const char* id : {"1", "2", "3", "4"}) put(ReportKind::tool_call, "f", id, 0);
  EXPECT_FALSE(evaluation.findings().of(Rule::identical_exchange4).alarm);
  for (const char* id : {"3", "1", "4", "2"}) put(ReportKind::tool_result, "f", id, 7);
  ASSERT_TRUE(evaluation.findings().of(Rule::identical_exchange4).alarm);
  EXPECT_EQ(evaluation.findings().steps[1].repeated,
            RuleSet{}.set(place_of(Rule::openhands)).set(place_of(Rule::identical_exchange4)));

  // Results that are named after who gives them, and a call that never had one.
  Evaluation nameless;
  for (std::int64_t seq = 0; seq < 8; ++seq) {
    nameless.fold({.report = {.kind = seq % 2 == 1 ? ReportKind::error : ReportKind::tool_call,
                              .name = seq == 0       ? "orphan"
                                      : seq % 2 == 1 ? "clerk"
                                                     : "ask"},
                   .seq = seq});
    if (seq == 0) ++seq;
  }
  EXPECT_TRUE(nameless.findings().of(Rule::failing_call3).alarm);
}

TEST(ScoreEvaluation, alarm_says_after_which_call_and_by_what) {
  const auto findings = findings_of("a1 b2 h h h h h c3 E");
  EXPECT_EQ(findings.calls, 3);
  const auto& alarm = findings.of(Rule::detector).alarm;
  ASSERT_TRUE(alarm);
  EXPECT_EQ(alarm->calls, 2);
  EXPECT_EQ(alarm->seq, 8);
  EXPECT_EQ(alarm->pattern, Pattern::no_state_change);
  EXPECT_FALSE(alarm->at_end);
}

TEST(ScoreEvaluation, an_event_after_the_end_or_a_repeated_event_changes_nothing) {
  EXPECT_FALSE(findings_of("a1 h E h h h h h").of(Rule::detector).alarm);
  Evaluation evaluation;
  for (int i = 0; i < 5; ++i) {
    Report call{.kind = ReportKind::tool_call, .name = "f", .event_id = "same"};
    evaluation.fold({.report = std::move(call)});
  }
  EXPECT_EQ(evaluation.findings().calls, 1);
}

TEST(ScoreEvaluation, time_moves_with_the_trace_and_never_back) {
  // The call's deadline excuses until it is over; only the end comes later than that.
  const auto alarm = [](std::vector<std::int64_t> times) {
    Evaluation evaluation;
    std::vector<json> objects{{{"kind", "tool_call"}, {"name", "f"}, {"deadline_ms", 1'000}}};
    for (int i = 0; i < 5; ++i) objects.push_back({{"kind", "heartbeat"}, {"source", "loop"}});
    objects.push_back({{"kind", "end"}});
    for (std::size_t at = 0; at < objects.size(); ++at) {
      if (times[at] > 0) objects[at]["ts_ms"] = times[at];
      auto report = report_from_json(objects[at].dump());
      evaluation.fold({.report = **report, .seq = static_cast<std::int64_t>(at)});
    }
    return evaluation.findings().of(Rule::detector).alarm;
  };
  const auto late = alarm({5'000, 5'010, 5'020, 5'030, 5'040, 5'050, 9'000});
  ASSERT_TRUE(late);
  EXPECT_TRUE(late->at_end);
  EXPECT_EQ(late->seq, 5) << "the newest event known then";
  EXPECT_TRUE(noticed(late, 0));
  EXPECT_FALSE(noticed(late, 8)) << "who sees the first calls alone does not see the end";
  EXPECT_FALSE(alarm({5'000, 0, 0, 0, 0, 0, 0})) << "time stands still where it is not known";
  EXPECT_FALSE(alarm({9'000, 5'010, 5'020, 5'030, 5'040, 5'050, 9'000}));
}

TEST(ScoreFigures, wilson_intervals_are_as_published) {
  const auto expect = [](int is, int of, double low, double high) {
    const auto interval = interval_of({.is = is, .of = of});
    EXPECT_NEAR(interval.low, low, 5e-5) << is << " of " << of;
    EXPECT_NEAR(interval.high, high, 5e-5) << is << " of " << of;
  };
  expect(81, 263, 0.2553, 0.3662);  // Newcombe 1998, method 3
  expect(15, 148, 0.0624, 0.1605);
  expect(0, 20, 0.0000, 0.1611);
  expect(1, 29, 0.0061, 0.1718);
  expect(5, 10, 0.2366, 0.7634);
  expect(20, 20, 0.8389, 1.0000);
  expect(0, 0, 0, 1);
  EXPECT_EQ(Count{}.share(), std::nullopt);
}

/// A run of `calls` calls. Rule `identical_call3` raised the alarm at the call `alarm`; 0: never.
ScoredRun run_of(std::optional<bool> loops, RunOutcome outcome, int calls, int alarm) {
  ScoredRun run;
  run.label.loops = loops;
  run.label.outcome = outcome;
  run.findings.calls = calls;
  auto& finding = run.findings.by_rule.at(place_of(Rule::identical_call3));
  if (alarm > 0) finding.alarm = Notice{.calls = alarm};
  if (alarm > 0) finding.suspicion = Notice{.calls = alarm - 1};
  return run;
}

TEST(ScoreFigures, score_is_what_can_be_counted_by_hand) {
  const std::vector<ScoredRun> runs = {
      run_of(true, RunOutcome::failure, 30, 4),  run_of(true, RunOutcome::failure, 30, 9),
      run_of(true, RunOutcome::success, 11, 0),  run_of(false, RunOutcome::success, 9, 9),
      run_of(false, RunOutcome::failure, 8, 0),  run_of({}, RunOutcome::success, 40, 0),
      run_of({}, RunOutcome::unknown, 40, 3),    run_of(true, RunOutcome::failure, 7, 3),
      run_of(false, RunOutcome::success, 50, 0),
  };
  Group group;
  for (const auto& run : runs) group.push_back(&run);

  const auto counts = counts_of(group, 0);
  EXPECT_EQ(counts.runs, 9);
  EXPECT_EQ(counts.loops, 4);
  EXPECT_EQ(counts.others, 3);
  EXPECT_EQ(counts.successes, 3) << "the looping success is none";
  const auto whole = score_of(group, Rule::identical_call3, 0);
  EXPECT_EQ(whole.precision.is, 3);
  EXPECT_EQ(whole.precision.of, 4);
  EXPECT_EQ(whole.recall.is, 3);
  EXPECT_EQ(whole.recall.of, 4);
  EXPECT_DOUBLE_EQ(whole.f1().value(), 0.75);
  EXPECT_EQ(whole.false_alarms.is, 1);
  EXPECT_EQ(whole.false_alarms.of, 3);
  EXPECT_EQ(whole.median_call, 4);

  // By the first 8 calls: the run of 7 is not there, and alarms at call 9 were not raised yet.
  const auto early = score_of(group, Rule::identical_call3, 8);
  EXPECT_EQ(counts_of(group, 8).runs, 8);
  EXPECT_EQ(early.precision.is, 1);
  EXPECT_EQ(early.precision.of, 1);
  EXPECT_EQ(early.recall.is, 1);
  EXPECT_EQ(early.recall.of, 3);
  EXPECT_DOUBLE_EQ(early.f1().value(), 0.5);
  EXPECT_EQ(early.false_alarms.is, 0);
  EXPECT_EQ(early.suspects.is, 1) << "suspicion came a call earlier";
  EXPECT_EQ(score_of(group, Rule::identical_call3, 12).median_call, 6.5);

  const auto none = score_of({}, Rule::detector, 0);
  EXPECT_EQ(none.f1(), std::nullopt);
  EXPECT_EQ(none.median_call, std::nullopt);
}

TEST(ScoreFigures, steps_are_found_by_the_numbers_of_the_trace) {
  ScoredRun run;
  run.findings = findings_of("a1 a1 a1 b1 c1 c1 c1");  // calls are lines 0, 2, 4 …
  run.steps = {{2, true}, {4, true}, {6, false}, {12, false}, {3, true}};
  const auto score = step_score_of({&run}, Rule::identical_call3);
  EXPECT_EQ(score.precision.is, 1);
  EXPECT_EQ(score.precision.of, 2);
  EXPECT_EQ(score.recall.is, 1);
  EXPECT_EQ(score.recall.of, 3);
  EXPECT_EQ(stray_steps(run), 1) << "line 3 is a result";
}

TEST(ScoreFigures, same_run_under_two_sources_is_counted_once) {
  const auto run = [](const char* id, const char* source, const char* task, const char* words) {
    ScoredRun made;
    made.label = {.id = id, .source = source, .task_key = task};
    made.findings = findings_of(words);
    return made;
  };
  std::vector<ScoredRun> runs = {
      run("marked", "agentrx", "1", "a1 b2"),    run("other", "whowhen", "1", "c1 d2"),
      run("twin", "whowhen", "1", "a1 b2"),      run("unmarked", "agentrx", "2", "a1"),
      run("same task", "whowhen", "2", "a1"),    run("dull", "agentrx", "3", "a1"),
      run("labelled", "whowhen", "3", "a1 b1 "), run("alone", "agentrx", "4", "a1")};
  runs[0].label.overlaps_whowhen = true;
  runs[5].label.overlaps_whowhen = true;
  runs[6].label.loops = true;
  runs[7].label.overlaps_whowhen = true;
  count_once(runs);
  std::vector<std::string> out;
  for (const auto& made : runs) {
    if (!made.pooled) out.push_back(made.label.id);
  }
  EXPECT_EQ(out, (std::vector<std::string>{"twin", "dull"})) << "labels are not lost";
}

TEST(ScoreLabels, trace_is_known_by_its_last_two_names) {
  EXPECT_EQ(label_id("/x/y/tar/one.two.jsonl"), "tar/one.two");
  EXPECT_EQ(label_id("y/../tar/./one.jsonl"), "tar/one");
  EXPECT_EQ(label_id("one.jsonl"), (std::filesystem::current_path().filename() / "one").string());
}

TEST(ScoreLabels, mistakes_are_named_with_file_and_line) {
  TempDir dir;
  const auto file = dir / "index.jsonl";
  const auto error = [&](const std::string& line) {
    std::ofstream(file) << R"({"id":"a/b","source":"a"})"
                        << "\n\n"
                        << line << "\n";
    const auto labels = read_labels(file);
    return labels ? std::string() : labels.error().message.substr(file.string().size());
  };
  EXPECT_EQ(error(R"({"id":"a/c","source":"a","label_loop":null,"more":[]})"), "");
  EXPECT_EQ(error("nonsense"), ":3: the line is not a JSON object");
  EXPECT_EQ(error(R"({"source":"a"})"), ":3: id is missing");
  EXPECT_EQ(error(R"({"id":"a/c","source":1})"), ":3: source must be a string");
  EXPECT_EQ(error(R"({"id":"a/c","source":"a","label_loop":"yes"})"),
            ":3: label_loop must be true, false or null");
  EXPECT_EQ(error(R"({"id":"a/c","source":"a","outcome":"good"})"),
            ":3: outcome is \"good\"; it must be one of unknown success failure");
  EXPECT_EQ(error(R"({"id":"a/b","source":"a"})"), ":3: a/b stands in line 1 already");
  std::ofstream(file) << R"({"id":"a/b","seq":"1","label":"x","rel":"action_action"})";
  EXPECT_NE(read_step_labels(file).error().message.find(":1: seq must be an integer"),
            std::string::npos);
}

const std::filesystem::path data = std::filesystem::path(PROJECT_ROOT) / "tests/data/score";

std::vector<std::string> score_words(std::vector<std::string> more) {
  std::vector<std::string> words{WATCHDOG_SCORE, "--index", data / "index.jsonl"};
  for (const char* folder : {"made", "told"}) {
    for (const auto& entry : std::filesystem::directory_iterator(data / folder))
      words.push_back(entry.path());
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// One rule's figures among those of all.
json rule(const json& scores, const char* name) {
  for (const auto& item : scores["rules"]) {
    if (item["rule"] == name) return item;
  }
  return {};
}

TEST(ScoreCommand, counts_every_source_and_each_run_once_in_all) {
  const auto ran = test::run(score_words({"--json", "--list"}));
  ASSERT_EQ(ran.code, 0) << ran.output;
  const auto document = json::parse(ran.output);
  EXPECT_EQ(document["counted_once"], json::array({"told/hand.one"}));
  EXPECT_EQ(document["runs"].size(), 7U);
  const auto& sources = document["sources"];
  ASSERT_EQ(sources.size(), 4U);
  EXPECT_EQ(sources[0]["source"], "agentrx");
  EXPECT_EQ(sources[3]["source"], nullptr);

  const auto& whole = sources[3]["scores"][0];
  EXPECT_EQ(whole["first_calls"], nullptr);
  EXPECT_EQ(whole["runs"], 6);
  EXPECT_EQ(whole["loops"], 2);
  EXPECT_EQ(whole["no_loops"], 2);
  EXPECT_EQ(whole["successes"], 3);
  EXPECT_EQ(rule(whole, "identical_call_3")["recall"]["count"], 2);
  EXPECT_EQ(rule(whole, "identical_call_3")["false_alarms"]["count"], 1) << "the unjudged one";
  EXPECT_EQ(rule(whole, "identical_call_3")["median_call"], 6);
  EXPECT_EQ(rule(whole, "identical_call_5")["recall"]["count"], 1);
  EXPECT_EQ(rule(whole, "openhands")["recall"]["count"], 2);
  EXPECT_EQ(rule(whole, "openhands")["f1"], 1);
  EXPECT_EQ(rule(whole, "detector")["false_alarms"]["of"], 3);

  const auto& early = sources[3]["scores"][1];
  EXPECT_EQ(early["first_calls"], 8);
  EXPECT_EQ(early["runs"], 2);
  EXPECT_EQ(rule(early, "identical_call_3")["recall"]["count"], 1);
  EXPECT_EQ(rule(early, "identical_exchange_4")["recall"]["count"], 0) << "held at call 9";

  EXPECT_EQ(sources[3]["judged_steps"], 4);
  for (const auto& item : sources[3]["steps"]) {
    if (item["rule"] != "identical_call_3") continue;
    EXPECT_EQ(item["precision"]["of"], 2);
    EXPECT_EQ(item["recall"]["count"], 2);
    EXPECT_EQ(item["recall"]["of"], 3);
  }
}

TEST(ScoreCommand, tables_say_the_same_to_people) {
  const auto ran = test::run(score_words({"--list"}));
  EXPECT_EQ(ran.code, 0);
  for (const char* text :
       {"All sources: 6 runs, 4 labelled (2 loops, 2 no loops), 3 successful without a loop",
        "this detector", "OpenHands-style rules (any of the four)", "1.00 [0.34 1.00] 2/2",
        "first 8",
        "Counted once in all sources, as they are the same runs under two: told/hand.one", "LABEL",
        "made/circling"}) {
    EXPECT_NE(ran.output.find(text), std::string::npos) << text << "\n" << ran.output;
  }
}

TEST(ScoreCommand, a_trace_that_cannot_be_scored_is_reported_and_the_rest_is_scored) {
  TempDir dir;
  std::filesystem::create_directory(dir / "made");
  std::ofstream(dir / "made/new.jsonl") << R"({"kind":"message"})"
                                        << "\n";
  std::ofstream(dir / "made/straight.jsonl") << "{\"kind\":\"message\"}\nnonsense\n";
  const auto run = [&](std::vector<std::string> words, const std::filesystem::path& index) {
    words.insert(words.begin(), {WATCHDOG_SCORE, "--index", index.string()});
    return test::run(words);
  };
  const auto index = data / "index.jsonl";
  auto ran = run({dir / "made/new.jsonl", data / "made/circling.jsonl"}, index);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("made/new is not in the index"), std::string::npos);
  EXPECT_NE(ran.output.find("traces not in the index: 1"), std::string::npos);
  EXPECT_NE(ran.output.find("All sources: 1 runs"), std::string::npos);

  ran = run({dir / "made/straight.jsonl", data / "made/circling.jsonl"}, index);
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.output.find("straight.jsonl:2: "), std::string::npos);
  EXPECT_NE(ran.output.find("All sources: 1 runs"), std::string::npos);

  ran = run({data / "made/circling.jsonl", data / "made/circling.jsonl"}, index);
  EXPECT_EQ(ran.code, 1) << "a run does not count twice";

  EXPECT_EQ(run({data / "made/none.jsonl"}, index).code, 5);
  EXPECT_EQ(run({data / "made/circling.jsonl"}, dir / "none.jsonl").code, 5);
  std::ofstream(dir / "bad.jsonl") << "{}\n";
  ran = run({data / "made/circling.jsonl"}, dir / "bad.jsonl");
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.output.find("bad.jsonl:1: id is missing"), std::string::npos);
  EXPECT_EQ(run({"--steps", dir / "none.jsonl", data / "made/circling.jsonl"}, index).code, 5);
}

/// The cells of the study's row that begins so, in the section of that title.
std::vector<std::string> row_of(const std::string& study, const std::string& section,
                                const std::string& begin) {
  const auto from = study.find("## " + section + "\n");
  const auto to = study.find("\n## ", from);
  const auto at = study.find("\n| " + begin + " |", from);
  std::vector<std::string> cells;
  if (from == std::string::npos || at >= std::min(to, study.size())) return cells;
  std::istringstream line(study.substr(at + 1, study.find('\n', at + 1) - at - 1));
  for (std::string cell; std::getline(line, cell, '|');)
    cells.push_back(cell.size() > 2 ? cell.substr(1, cell.size() - 2) : cell);
  cells.erase(cells.begin());
  return cells;
}

TEST(ScoreCommand, study_says_what_each_rule_and_constant_is_worth) {
  // Three loops and three successes that can be judged by hand, of two splits.
  TempDir dir;
  const std::map<std::string, std::string> runs{
      {"same", "a1 a1 a1 a1 a1 a1"},          {"more", "b1 c1 a!1 a!1 a!1 a!1 a!1"},
      {"late", "b1 c1 d1 e1 f1 a1 a1 a1 a1"}, {"good", "a1 b1 c1 d1 e1 f1"},
      {"well", "a1 b1 a1 c1 d1 e1"},          {"fine", "a1 a2 a3 a4 a5 a6"}};
  std::filesystem::create_directory(dir / "run");
  std::ofstream index(dir / "index.jsonl");
  std::vector<std::string> words{WATCHDOG_SCORE, "--study", "--index", dir / "index.jsonl"};
  for (const auto& [name, calls] : runs) {
    const bool loops = calls.find("a1 a1") != std::string::npos || name == "more";
    index << json({{"id", "run/" + name},
                   {"source", "made"},
                   {"task_key", name},
                   {"split", name < "g" ? "dev" : "tune"},
                   {"label_loop", loops},
                   {"outcome", loops ? "failure" : "success"}})
                 .dump()
          << "\n";
    words.push_back(dir / ("run/" + name + ".jsonl"));
    std::ofstream file(words.back());
    int number = 0;
    std::istringstream stream(calls);
    for (std::string word; stream >> word; ++number) {
      const auto id = std::to_string(number);
      const bool failed = word.find('!') != std::string::npos;
      file << json({{"kind", "tool_call"},
                    {"name", "f"},
                    {"call_id", id},
                    {"args", {{"x", word.substr(0, 1)}}}})
                  .dump()
           << "\n"
           << json({{"kind", failed ? "error" : "tool_result"},
                    {"name", "f"},
                    {"call_id", id},
                    {"text", std::string(300, 'r') + word.substr(1)}})
                  .dump()
           << "\n";
    }
  }
  index.close();
  const auto ran = test::run(words);
  ASSERT_EQ(ran.code, 0) << ran.output;
  const auto& study = ran.output;
  const auto cell = [&](const char* section, const char* row, std::size_t column) {
    const auto cells = row_of(study, section, row);
    return column < cells.size() ? cells[column] : "none of " + std::to_string(cells.size());
  };
  // Columns: 1 loops confirmed, 5 alarms, no loop, 7 successes at least suspect.
  EXPECT_TRUE(cell("The detector beside other rules", "detector", 1).starts_with("3/3 ["));
  EXPECT_TRUE(cell("The detector beside other rules", "failing_call_3", 1).starts_with("1/3 ["));
  EXPECT_TRUE(cell("The detector beside other rules", "same_error_3", 1).starts_with("1/3 ["));
  EXPECT_TRUE(cell("The detector beside other rules", "exchange_6_of_10", 1).starts_with("0/3 ["));
  EXPECT_EQ(cell("By source", "made", 1), "3/3");
  EXPECT_EQ(cell("By source", "made", 7), "0/3");
  EXPECT_TRUE(cell("By split", "dev", 7).starts_with("0/1 ["));
  EXPECT_TRUE(cell("By split", "tune", 1).starts_with("3/3 ["));
  EXPECT_EQ(cell("Each rule left out", "(nothing left out)", 1), "3/3");
  EXPECT_EQ(cell("Each threshold at several values", "**R4 stuck 2.75**", 1), "3/3");
  EXPECT_EQ(cell("Each constant at several values", "**R4 repeated 1**", 1), "3/3");
  EXPECT_EQ(cell("Each constant at several values", "**second pass over at least 12**", 1), "3/3");
  EXPECT_TRUE(cell("Early recall against alarms on successes", "**1**", 1).starts_with("3/3 ["));
  EXPECT_FALSE(cell("Early recall against alarms on successes", "2", 1).starts_with("3/3 ["));
  EXPECT_EQ(test::run(words).output, study) << "deterministic";
}

// The constants that a study tries are those that the rules use.
TEST(ScoreStudy, constants_of_the_rules_change_what_is_found) {
  const auto alarmed = [](const Policy& policy, const std::string& words) {
    Evaluation evaluation(policy);
    for (auto& line : lines_of(words)) evaluation.fold(std::move(line));
    return evaluation.findings().of(Rule::detector).alarm.has_value();
  };
  const std::string three = "a1 a1 a1";
  Policy policy;
  EXPECT_FALSE(alarmed(policy, three));
  policy.weights.repeated_once = 2;
  EXPECT_TRUE(alarmed(policy, three));
  policy.weights.repeated_once = 0;
  policy.weights.repeated_more = 0;
  EXPECT_FALSE(alarmed(policy, "b1 a1 b1 a1"));
  EXPECT_EQ(digest_of(policy), digest_of(Policy{})) << "they are no thresholds of a session";
}

// The promises about the recorded runs that people judged.
TEST(ScoreCommand, detector_keeps_its_promises_on_recorded_runs) {
  const auto traces = test::recorded_runs();
  if (traces.empty()) GTEST_SKIP() << test::no_recorded_runs;
  std::vector<std::string> words{WATCHDOG_SCORE, "--json", "--index",
                                 test::corpus() / "index.jsonl"};
  words.insert(words.end(), traces.begin(), traces.end());
  const auto ran = test::run(words);
  ASSERT_EQ(ran.code, 0) << ran.output.substr(0, 2'000);
  const auto sources = json::parse(ran.output)["sources"];
  const auto of = [&](const std::string& source) {
    return *std::find_if(sources.begin(), sources.end(),
                         [&](const json& item) { return item["source"] == source; });
  };
  const auto engineers = of("tar");
  const auto whole = rule(engineers["scores"][0], "detector");
  EXPECT_EQ(whole["recall"]["of"], 13);
  EXPECT_GE(whole["recall"]["count"], 12);
  EXPECT_EQ(whole["precision"]["count"], whole["precision"]["of"]) << "no false one";
  for (const auto& score : engineers["scores"]) {
    if (score["first_calls"] == 12) {
      EXPECT_GE(rule(score, "detector")["recall"]["count"], 4) << "as many as the reference";
    }
    for (const auto& peer : score["rules"]) {
      const bool is_sure = peer["precision"]["count"] == peer["precision"]["of"] &&
                           peer["false_alarms"]["count"] == 0;
      // Others find one more at the price of false alarms.
      if (is_sure) {
        EXPECT_GE(rule(score, "detector")["recall"]["count"], peer["recall"]["count"]) << peer;
      }
    }
  }
  const auto all = rule(sources.back()["scores"][0], "detector");
  // One of them people judged to be looping although it succeeded in the end.
  EXPECT_EQ(all["false_alarms"]["of"], 282);
  EXPECT_LE(all["false_alarms"]["count"], 2);
}

}  // namespace
}  // namespace watchdog::monitor
