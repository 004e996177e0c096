#include "codec/json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <set>

#include "codec/budget.h"
#include "codec/facts.h"
#include "codec/fields.h"
#include "codec/progress.h"
#include "support/agent.h"
#include "support/scenario.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

TEST(BudgetFigures, of_every_size_are_read_as_they_were_written) {
  constexpr std::int64_t sizes[] = {0, 1, 999, 1'000, 1'001, budget_max - 1, budget_max};
  for (const auto limit : sizes) {
    for (const auto used : sizes) {
      const auto figures = bounded({.limits = {.steps = limit, .duration = Millis{limit}},
                                    .steps = used,
                                    .tokens = used,
                                    .elapsed = Millis{used}});
      JsonWriter out;
      out.open_object();
      write_figures(out, figures);
      const auto object = nlohmann::json::parse(out.close_object().finish());
      Fields fields(object);
      const auto read = read_figures(fields);
      ASSERT_FALSE(fields.error()) << fields.error()->message << " in " << object;
      EXPECT_EQ(read.limits.duration, figures.limits.duration);
      EXPECT_EQ(read.elapsed, figures.elapsed);
      EXPECT_EQ(read.steps, figures.steps);
    }
  }
}

Report parsed(std::string_view text) {
  auto report = report_from_json(text);
  EXPECT_TRUE(report.ok()) << (report ? "" : report.error().message);
  EXPECT_TRUE(report.ok() && report->has_value()) << text;
  return report.ok() && *report ? **report : Report{};
}

TEST(Json, reads_every_kind_of_the_trace_format) {
  EXPECT_EQ(
      parsed(R"({"kind":"tool_call","name":"f","args":{"b":1,"a":[2]},"call_id":"7"})").content,
      R"({"a":[2],"b":1})");
  EXPECT_EQ(parsed(R"({"kind":"tool_call","name":"f","args":"ls -l"})").content, "ls -l");
  EXPECT_EQ(parsed(R"({"kind":"tool_result","name":"f","text":"ok","result_hash":"ab"})").hash,
            "ab");
  EXPECT_EQ(parsed(R"({"kind":"error","name":"f","text":"no"})").kind, ReportKind::error);
  EXPECT_EQ(parsed(R"({"kind":"state_change","type":"plan_generated","data":{"steps":3}})").name,
            "plan_generated");
  EXPECT_EQ(parsed(R"({"kind":"wait","waiting_for":"approval"})").name, "approval");
  EXPECT_EQ(parsed(R"({"kind":"wait","name":"approval"})").name, "approval");
  const auto beat = parsed(
      R"({"kind":"heartbeat","iteration":4,"phase":"think","source":"sidecar","counters":{"tokens":12.5}})");
  const auto& beats = std::get<Heartbeats>(beat.detail);
  EXPECT_EQ(beats.iteration, 4);
  EXPECT_EQ(beats.phase, "think");
  EXPECT_EQ(beats.source, Source::sidecar);
  EXPECT_EQ(beats.counters, (Counters{{"tokens", 12.5}}));
  const auto end =
      parsed(R"({"kind":"end","outcome":"failed","reason":"task_failed","error":"no"})");
  EXPECT_EQ(std::get<Outcome>(end.detail).kind, OutcomeKind::failed);
  EXPECT_FALSE(std::get<Outcome>(parsed(R"({"kind":"end"})").detail).stated);
  EXPECT_EQ(
      parsed(R"({"seq":1,"ts_ms":null,"kind":"message","name":"user","args":null,"text":"hi"})")
          .ts_ms,
      std::nullopt);
}

TEST(Json, an_end_has_a_separate_reason_and_subject_even_if_written_as_one) {
  struct Row {
    const char* text;
    std::string reason;
    std::string subject;
  };
  for (const auto& [text, reason, subject] : std::vector<Row>{
           {R"({"outcome":"cancelled"})", "cancelled", "user"},
           {R"({"outcome":"cancelled","subject":"ann"})", "cancelled", "ann"},
           {R"({"outcome":"cancelled","reason":"cancelled","subject":"ann"})", "cancelled", "ann"},
           {R"({"outcome":"cancelled","reason":"cancelled_by_user"})", "cancelled", "user"},
           {R"({"outcome":"cancelled","reason":"cancelled_by_ann b"})", "cancelled", "ann b"},
           {R"({"outcome":"cancelled","reason":"legacy_time_limit"})", "legacy_time_limit", ""},
           {R"({"outcome":"incomplete","reason":"budget_exhausted:tokens"})", "budget_exhausted",
            "tokens"},
           {R"({"outcome":"incomplete","reason":"budget_exhausted","subject":"cost"})",
            "budget_exhausted", "cost"},
           {R"({"outcome":"incomplete","reason":"budget_exhausted"})", "budget_exhausted", ""},
           {R"({"outcome":"incomplete"})", "unspecified", ""},
           {R"({"outcome":"failed"})", "error", ""},
           {R"({"outcome":"failed","reason":"my_own:word"})", "my_own:word", ""},
           {R"({"outcome":"completed"})", "task_complete", ""}}) {
    const auto end = parsed(R"({"kind":"end",)" + std::string(text).substr(1));
    const auto& outcome = std::get<Outcome>(end.detail);
    EXPECT_EQ(outcome.reason, reason) << text;
    EXPECT_EQ(outcome.subject, subject) << text;
    Case judged;
    judged.history.notes.edit().outcome = outcome;
    Case restored;
    ASSERT_TRUE(read_snapshot(restored, snapshot_of(judged)).ok()) << text;
    EXPECT_EQ(restored.history.notes->outcome->reason, reason) << text;
    EXPECT_EQ(restored.history.notes->outcome->subject, subject) << text;
  }
  // Of a program that knew no subjects.
  Case judged;
  judged.history.notes.edit().outcome =
      Outcome{.kind = OutcomeKind::incomplete, .reason = "budget_exhausted:tokens"};
  Case restored;
  ASSERT_TRUE(read_snapshot(restored, snapshot_of(judged)).ok());
  EXPECT_EQ(restored.history.notes->outcome->reason, "budget_exhausted");
  EXPECT_EQ(restored.history.notes->outcome->subject, "tokens");
}

TEST(Reasons, are_all_in_their_list_once_and_say_nothing_else) {
  std::ifstream file(std::filesystem::path(PROJECT_ROOT) /
                     "libwatchdog/include/watchdog/reasons.h");
  std::string text(std::istreambuf_iterator<char>(file), {});
  std::set<std::string> defined;
  const std::regex constant("=\\s+\"([a-z_]+)\"");
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(text.find("all[]"));
  for (std::sregex_iterator at(text.begin(), end, constant), none; at != none; ++at)
    defined.insert(at->str(1));
  const std::set<std::string> listed(std::begin(reasons::all), std::end(reasons::all));
  EXPECT_EQ(listed, defined);
  EXPECT_EQ(listed.size(), std::size(reasons::all));
  for (const auto& reason : listed) {
    EXPECT_EQ(with_subject({.reason = reason}).reason, reason);
    EXPECT_EQ(reason.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << reason;
  }
  // Nobody ends a session with a word that is not among them.
  const std::regex word("(outcome\\.reason = |reason_or\\(|OutcomeKind::[a-z]+, )\"");
  for (const auto* folder : {"libwatchdog/src", "libwatchdog/include", "monitor"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(PROJECT_ROOT) / folder)) {
      const auto kind = entry.path().extension();
      if (kind != ".cpp" && kind != ".h") continue;
      std::ifstream source(entry.path());
      for (std::string line; std::getline(source, line);) {
        if (line.find('"') == std::string::npos) continue;  // expressions are slow
        EXPECT_FALSE(std::regex_search(line, word)) << entry.path() << ": " << line;
      }
    }
  }
}

TEST(Json, ignores_kinds_that_agents_do_not_send) {
  for (const char* kind : {"observer", "exited", "policy", "cancel", "gap", "thinking"}) {
    auto list = reports_from_json(std::string(R"({"kind":")") + kind + "\"}");
    ASSERT_TRUE(list.ok());
    EXPECT_EQ(list->ignored, 1U);
  }
}

struct Mistake {
  const char* text;
  ErrorCode code;
  const char* field;
  int line;
};
class Mistakes : public testing::TestWithParam<Mistake> {};
TEST_P(Mistakes, are_named) {
  const auto list = reports_from_json(GetParam().text);
  ASSERT_FALSE(list.ok()) << GetParam().text;
  EXPECT_EQ(list.error().code, GetParam().code) << list.error().message;
  EXPECT_EQ(list.error().field, GetParam().field);
  EXPECT_EQ(list.error().line, GetParam().line);
}
INSTANTIATE_TEST_SUITE_P(
    Bodies, Mistakes,
    testing::Values(
        Mistake{"", ErrorCode::malformed, "", 0}, Mistake{"{", ErrorCode::malformed, "", 0},
        Mistake{"nonsense", ErrorCode::malformed, "", 0}, Mistake{"7", ErrorCode::malformed, "", 0},
        Mistake{"{}", ErrorCode::malformed, "kind", 0},
        Mistake{R"({"kind":7})", ErrorCode::malformed, "kind", 0},
        Mistake{R"({"kind":"heartbeat","iteration":"four"})", ErrorCode::malformed, "iteration", 0},
        Mistake{R"({"kind":"heartbeat","iteration":18446744073709551615})", ErrorCode::invalid,
                "iteration", 0},
        Mistake{R"({"kind":"heartbeat","counters":[1]})", ErrorCode::malformed, "counters", 0},
        Mistake{R"({"kind":"heartbeat","counters":{"a":"b"}})", ErrorCode::malformed, "counters",
                0},
        Mistake{R"({"kind":"heartbeat","source":"cat"})", ErrorCode::invalid, "source", 0},
        Mistake{R"({"kind":"state_change"})", ErrorCode::malformed, "type", 0},
        Mistake{R"({"kind":"budget","current_step":-1})", ErrorCode::invalid, "current_step", 0},
        Mistake{R"({"kind":"budget","max_steps":1.5})", ErrorCode::malformed, "max_steps", 0},
        Mistake{R"({"kind":"budget","elapsed_seconds":9007199254742})", ErrorCode::invalid,
                "elapsed_seconds", 0},
        Mistake{R"({"kind":"budget","cost":-0.1})", ErrorCode::invalid, "cost", 0},
        Mistake{R"({"kind":"budget","stage":"calm"})", ErrorCode::invalid, "stage", 0},
        Mistake{R"({"kind":"budget","time_enforced":1})", ErrorCode::malformed, "time_enforced", 0},
        Mistake{R"({"kind":"end","outcome":"success"})", ErrorCode::invalid, "outcome", 0},
        Mistake{R"([{"kind":"message"},{"kind":1}])", ErrorCode::malformed, "kind", 2},
        Mistake{"{\"kind\":\"message\"}\n{\"kind\":\"message\"}\n{oops\n", ErrorCode::malformed, "",
                3},
        Mistake{"{oops\n{\"kind\":\"message\"}\n", ErrorCode::malformed, "", 1}),
    [](const auto& chosen) { return "body" + std::to_string(chosen.index); });

TEST(Json, reads_one_object_an_array_and_lines) {
  EXPECT_EQ(reports_from_json("{\n \"kind\": \"message\"\n}\n")->reports.size(), 1U);
  EXPECT_EQ(reports_from_json(R"([{"kind":"message"},{"kind":"message"}])")->reports.size(), 2U);
  EXPECT_EQ(
      reports_from_json("{\"kind\":\"message\"}\r\n\r\n{\"kind\":\"message\"}")->reports.size(),
      2U);
  EXPECT_EQ(reports_from_json("[]")->reports.size(), 0U);
}

TEST(Json, refuses_what_is_too_deep_or_too_large) {
  std::string deep = R"({"kind":"state_change","type":"x","data":)" + std::string(200'000, '[');
  EXPECT_EQ(reports_from_json(deep).error().code, ErrorCode::malformed);
  EXPECT_EQ(reports_from_json("{\"kind\":\"message\",\"text\":\"" +
                              std::string(event_bytes_max, 'x') + "\"}")
                .error()
                .code,
            ErrorCode::exhausted);
  EXPECT_EQ(reports_from_json("{\"kind\":\"message\"}\n{\"kind\":\"message\",\"text\":\"" +
                              std::string(event_bytes_max, 'x') + "\"}")
                .error()
                .line,
            2);
}

// Mutations of real bodies: any answer is fine, a crash or hang is not.
TEST(Json, survives_hostile_bodies) {
  std::mt19937 random(test::random_seed());
  const std::string seeds[] = {
      R"({"kind":"heartbeat","iteration":4,"phase":"think","source":"loop","counters":{"t":1}})",
      R"([{"kind":"tool_call","name":"f","args":{"a":[1,2,{"b":null}]},"event_id":"x"}])",
      R"({"kind":"budget","stage":"low","current_step":7,"max_steps":30,"elapsed_ms":45,"cost":0.1})",
      "{\"kind\":\"end\",\"outcome\":\"failed\"}\n{\"kind\":\"state_change\",\"type\":\"a\","
      "\"data\":1e999}\n"};
  for (int i = 0; i < test::repetitions(200'000); ++i) {
    std::string body = seeds[random() % std::size(seeds)];
    for (auto n = 1 + random() % 6; n > 0; --n) {
      const auto at = random() % body.size();
      switch (random() % 4) {
        case 0:
          body[at] = static_cast<char>(random());
          break;
        case 1:
          body.erase(at, 1 + random() % 5);
          break;
        case 2:
          body.insert(at, body.substr(random() % body.size(), random() % 20));
          break;
        default:
          body.insert(at, 1, "{}[]\",:\\\n0-"[random() % 11]);
      }
      if (body.empty()) body = "x";
    }
    std::string id;
    (void)reports_from_json(body);
    (void)session_spec_from_json(body, id);
    (void)policy_patch_from_json(body);
    Case judged;
    (void)read_snapshot(judged, body);
    Report report{.kind = static_cast<ReportKind>(random() % std::size(Names<ReportKind>::all))};
    (void)read_facts(report, body, Instant{Millis{5}});
  }
}

TEST(Json, event_written_and_read_again_is_the_same_event) {
  for (
      const char* text :
      {R"({"kind":"tool_call","name":"f","args":{"a":[2],"b":1},"args_hash":"ff","call_id":"7","deadline_ms":500})",
       R"({"kind":"heartbeat","iteration":4,"phase":"think","source":"loop","counters":{"tokens":12.5}})",
       R"({"kind":"end","outcome":"failed","reason":"task_failed","error":"no"})",
       R"({"kind":"end","outcome":"cancelled","reason":"cancelled","subject":"ann","error":"no"})",
       R"({"kind":"limit","name":"tool","limit":"tool","limit_value":30000,"reached":30001,"enforced":true})",
       R"({"kind":"budget"})",
       R"({"kind":"budget","name":"extended","max_pressure":66.67,"axis":"cost","stage":"low"})",
       R"({"kind":"budget","current_step":7,"max_steps":30,"elapsed_ms":45123,"duration_ms":300001,"time_enforced":true,"tool_calls":3,"max_tool_calls":0,"tokens":5,"max_tokens":9007199254740992,"cost":0.1,"max_cost":0.7,"call_id":"child"})"}) {
    Event event{.seq = 3, .session = 1, .tick = Instant{Millis{9}}, .report = parsed(text)};
    if (auto* beats = std::get_if<Heartbeats>(&event.report.detail))
      beats->first = beats->last = event.tick;
    Report again{
        .kind = event.report.kind, .name = event.report.name, .content = event.report.content};
    if (const auto* beats = std::get_if<Heartbeats>(&event.report.detail))
      again.name = beats->phase;
    ASSERT_TRUE(read_facts(again, facts_of(event.report, event.tick), event.tick).ok());
    Event copy = event;
    copy.report = again;
    EXPECT_EQ(to_json(copy), to_json(event));
    EXPECT_TRUE(is_json(to_json(event)));
  }
}

TEST(Json, reads_a_budget_of_the_fewest_figures) {
  const auto report = parsed(
      R"({"kind":"budget","elapsed_seconds":45,"remaining_seconds":255,"current_step":24,"steps_remaining":6})");
  EXPECT_EQ(report.name, "update");
  const auto& figures = std::get<BudgetFigures>(report.detail);
  EXPECT_EQ(figures.limits.duration, Millis{300'000});
  EXPECT_EQ(figures.limits.steps, 30);
  EXPECT_EQ(figures.pressure, 0.8);
  EXPECT_EQ(figures.stage, BudgetStage::warn) << "by the usual thresholds";
  const auto after = std::get<BudgetFigures>(
      parsed(R"({"kind":"budget","stage":"finalize","axis":"tokens","max_pressure":91.5})").detail);
  EXPECT_EQ(after.stage, BudgetStage::finalize);
  EXPECT_EQ(after.axis, BudgetAxis::tokens);
  EXPECT_EQ(after.pressure, 0.915);
}

TEST(Json, writes_a_budget_with_its_shares_in_percent) {
  Event event{.seq = 3, .session = 1, .tick = Instant{Millis{9}}};
  event.report = parsed(
      R"({"kind":"budget","current_step":7,"max_steps":30,"elapsed_seconds":45,"remaining_seconds":255})");
  EXPECT_EQ(
      to_json(event),
      R"({"seq":3,"at_ms":0,"kind":"budget","name":"update","stage":"nominal","axis":"steps","max_pressure":23.33,"current_step":7,"max_steps":30,"steps_remaining":23,"step_pressure":23.33,"elapsed_seconds":45,"remaining_seconds":255,"time_pressure":15,"time_enforced":false,"elapsed_ms":45000,"duration_ms":300000,"tool_calls":0,"tokens":0,"cost":0})");
}

TEST(Json, a_budget_beyond_all_bounds_is_written_within_them) {
  constexpr auto no_number = std::numeric_limits<double>::quiet_NaN();
  Report report{.kind = ReportKind::budget};
  report.detail =
      BudgetFigures{.limits = {.steps = -5, .tokens = 1, .cost = 1e-300, .duration = Millis::min()},
                    .steps = -1,
                    .tokens = INT64_MAX,
                    .cost = 1e300,
                    .elapsed = Millis::max(),
                    .pressure = no_number};
  Report again{.kind = ReportKind::budget};
  ASSERT_TRUE(read_facts(again, facts_of(report, {}), {}).ok());
  EXPECT_EQ(facts_of(again, {}), facts_of(report, {}));
}

TEST(Json, progress_document_reports_the_budget_last_reported) {
  const auto document_of = [](const std::vector<Event>& events) {
    const auto after = test::replay(events);
    return progress_document("s", after.judged, description_of({}), after.now, WallTime{});
  };
  auto events = test::events_of("BBS");
  events[1].report.call_id = "child";
  const auto document = document_of(events);
  EXPECT_TRUE(is_json(document));
  EXPECT_NE(
      document.find(
          R"("budget":{"stage":"nominal","axis":"time","maxPressure":81.04,"currentStep":1,"maxSteps":30,"stepsRemaining":29,"stepPressure":3.33,"elapsedSeconds":1,"remainingSeconds":1,"timePressure":81.04,"timeEnforced":false,"maxSeconds":2,"toolCalls":0,"maxToolCalls":null,"tokens":0,"maxTokens":null,"cost":0.1,"maxCost":0.7,"at":1001000})"),
      std::string::npos)
      << document << ": a child's figures are not its parent's";
  EXPECT_NE(document_of(test::events_of("S")).find(R"("budget":null)"), std::string::npos);
}

TEST(Json, a_budget_is_a_sign_of_life_and_changes_no_health) {
  const auto quiet = test::replay("S hhhhh");
  const auto after = test::replay("S hhhhh BBB");
  EXPECT_EQ(after.judged.health.kind, HealthKind::stuck);
  EXPECT_EQ(after.judged.health_since, quiet.judged.health_since);
  EXPECT_EQ(after.judged.history.state_changes, 1);
  EXPECT_EQ(after.judged.history.last_sign, after.judged.history.tick);
  EXPECT_EQ(test::replay("S w B").judged.history.lifecycle, Lifecycle::waiting);
}

TEST(Json, a_snapshot_from_before_budgets_is_read) {
  const auto after = test::replay("S h");
  const auto text = snapshot_of(after.judged);
  EXPECT_EQ(text.find("budget"), std::string::npos);
  Case restored;
  EXPECT_TRUE(read_snapshot(restored, text).ok());
}

TEST(Json, a_snapshot_whose_calls_have_no_exit_codes_is_read) {
  test::Agent agent;
  for (int i = 0; i < 4; ++i) agent.call("bash", "make", "Exit code: 2");
  ASSERT_EQ(agent.judged.history.repetition->loop.count, 4);
  auto older = nlohmann::json::parse(snapshot_of(agent.judged));
  auto& repetition = older["history"]["repetition"];
  for (int i = 0; i < 9; ++i) repetition.erase(repetition.size() - 1);
  for (auto& step : repetition[0]) step.erase(step.end() - 2, step.end());
  Case restored;
  ASSERT_TRUE(read_snapshot(restored, older.dump()).ok());
  EXPECT_EQ(restored.history.repetition->steps.size(), 4U);
  EXPECT_EQ(restored.history.repetition->loop.count, 0);
  EXPECT_EQ(restored.history.repetition->score, agent.judged.history.repetition->score);
}

TEST(Json, a_session_that_ends_in_a_loop_keeps_how_many_calls_that_cost) {
  const auto wasted = [](auto&& work) {
    test::Agent agent;
    work(agent);
    Report end{.kind = ReportKind::end};
    end.detail = Outcome{};
    agent.say(std::move(end));
    Case restored;
    EXPECT_TRUE(read_snapshot(restored, snapshot_of(agent.judged)).ok());
    return restored.history.notes->wasted_calls;
  };
  const auto read = [](test::Agent& agent, const std::string& what) {
    agent.call("read", what, "text of " + what);
  };
  EXPECT_EQ(wasted([&](auto& agent) {
              for (int i = 0; i < 12; ++i) read(agent, "a");
            }),
            12);
  EXPECT_EQ(wasted([&](auto& agent) {
              for (const char* what : {"x", "y", "z"}) read(agent, what);
              for (int i = 0; i < 6; ++i) read(agent, "a"), read(agent, "b");
            }),
            12)
      << "what came before was no waste";
  EXPECT_EQ(wasted([&](auto& agent) {
              for (int i = 0; i < 2; ++i) read(agent, "a");
            }),
            0)
      << "nothing was concluded";
  EXPECT_EQ(wasted([&](auto& agent) {
              for (int i = 0; i < 8; ++i) read(agent, "a");
              for (int i = 0; i < 8; ++i) agent.state("{\"n\":" + std::to_string(i) + "}");
            }),
            0)
      << "it got out of it";
  // The turn is over first, and then the session.
  EXPECT_EQ(wasted([&](auto& agent) {
              for (int i = 0; i < 12; ++i) read(agent, "a");
              agent.message("done").kind(ReportKind::idle);
            }),
            12);
}

TEST(Json, turns_progress_and_timeouts_are_read_and_written_back_as_they_were) {
  for (
      const char* text :
      {R"({"kind":"turn","name":"turn_start","call_id":"t","parent_turn_id":"above","depth":2})",
       R"({"kind":"turn","name":"turn_abort","call_id":"t","reason":"timeout"})",
       R"({"kind":"turn","name":"turn_end","call_id":"t","reason":"completed","tool_calls":3})",
       R"({"kind":"tool_call","name":"sh","args":{"a":1},"call_id":"c","turn_id":"t","deadline_ms":9})",
       R"({"kind":"tool_progress","name":"sh","text":"half","call_id":"c","elapsed_ms":5,"value":0.5,"total":1,"output_bytes":7,"accepted":2})",
       R"({"kind":"tool_timeout","name":"sh","text":"[TIMEOUT]","call_id":"c","limit_kind":"queue","limit_ms":6,"elapsed_ms":7,"still_running":true})",
       R"({"kind":"evidence","text":"it moves","call_id":"r","state":"reading","done":41216,"total":61440,"left_ms":118000})",
       R"({"kind":"wait","waiting_for":"quota","text":"at nine","until_ms":1795806400000,"provider":"anthropic"})",
       R"({"kind":"resume","waiting_for":"approval"})", R"({"kind":"evidence","state":"over"})"}) {
    Event event{.seq = 1, .session = 1, .report = parsed(text)};
    const auto written = to_json(event);
    EXPECT_EQ(written.substr(written.find(R"("kind")")), text + 1) << "behind seq and time";
    // The facts that the store keeps beside its columns give the same text.
    Report stored{
        .kind = event.report.kind, .name = event.report.name, .content = event.report.content};
    ASSERT_TRUE(read_facts(stored, facts_of(event.report, {}), {}).ok());
    event.report = std::move(stored);
    EXPECT_EQ(to_json(event), written);
  }
}

TEST(Json, a_cancel_request_is_read_back_unchanged) {
  Report report{.kind = ReportKind::cancel};
  report.detail = CancelRequest{.by = "ann", .reason = "enough", .turn = "t", .call = "c"};
  const auto facts = facts_of(report, {});
  EXPECT_EQ(facts, R"({"by":"ann","reason":"enough","turn_id":"t","call_id":"c"})");
  Report again{.kind = ReportKind::cancel};
  ASSERT_TRUE(read_facts(again, facts, {}).ok());
  EXPECT_EQ(std::get<CancelRequest>(again.detail).call, "c");
  EXPECT_EQ(again.call_id, "") << "it pairs nothing";
  EXPECT_EQ(facts_of(again, {}), facts);
}

TEST(Json, numbers_of_turns_and_calls_are_bounded) {
  const std::vector<std::tuple<const char*, const char*, ErrorCode>> wrong{
      {R"({"kind":"turn","name":"turn_start","call_id":"t","depth":-1})", "depth",
       ErrorCode::invalid},
      {R"({"kind":"turn","name":"turn_start","call_id":"t","depth":1001})", "depth",
       ErrorCode::invalid},
      {R"({"kind":"turn","name":"turn_end","call_id":"t","tool_calls":"x"})", "tool_calls",
       ErrorCode::malformed},
      {R"({"kind":"turn","name":"turn_pause","call_id":"t"})", "name", ErrorCode::invalid},
      {R"({"kind":"turn","call_id":"t"})", "name", ErrorCode::malformed},
      {R"({"kind":"turn","name":"turn_end"})", "call_id", ErrorCode::malformed},
      {R"({"kind":"tool_progress","value":-0.5})", "value", ErrorCode::invalid},
      {R"({"kind":"tool_progress","total":"NaN"})", "total", ErrorCode::malformed},
      {R"({"kind":"tool_progress","accepted":-1})", "accepted", ErrorCode::invalid},
      {R"({"kind":"tool_progress","elapsed_ms":9007199254740993})", "elapsed_ms",
       ErrorCode::invalid},
      {R"({"kind":"tool_timeout","limit_kind":"late"})", "limit_kind", ErrorCode::invalid},
      {R"({"kind":"tool_timeout","still_running":1})", "still_running", ErrorCode::malformed},
      {R"({"kind":"evidence","call_id":"r"})", "state", ErrorCode::malformed},
      {R"({"kind":"evidence","state":"asleep"})", "state", ErrorCode::invalid},
      {R"({"kind":"evidence","state":"reading","done":-1})", "done", ErrorCode::invalid},
      {R"({"kind":"evidence","state":"reading","total":1.5})", "total", ErrorCode::malformed},
      {R"({"kind":"evidence","state":"reading","left_ms":"soon"})", "left_ms",
       ErrorCode::malformed},
      {R"({"kind":"tool_call","turn_id":5})", "turn_id", ErrorCode::malformed}};
  for (const auto& [text, field, code] : wrong) {
    const auto refused = report_from_json(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().field, field) << text;
    EXPECT_EQ(refused.error().code, code) << text;
  }
}

TEST(Json, progress_beyond_all_bounds_is_written_within_them) {
  Report report{.kind = ReportKind::tool_progress};
  report.detail = ToolProgress{.elapsed = Millis::min(),
                               .value = std::numeric_limits<double>::quiet_NaN(),
                               .total = -1,
                               .bytes = -1,
                               .accepted = INT64_MAX};
  Report again{.kind = ReportKind::tool_progress};
  ASSERT_TRUE(read_facts(again, facts_of(report, {}), {}).ok());
  EXPECT_EQ(facts_of(again, {}), facts_of(report, {}));
}

TEST(Json, evidence_beyond_all_bounds_is_read_and_written_within_them) {
  const auto report = parsed(
      R"({"kind":"evidence","state":"reading","done":9000000000000000,"total":5000000000000,"left_ms":9000000000000})");
  const Evidence most{ServerState::reading, 1'000'000'000'000, 1'000'000'000'000,
                      Millis{604'800'000}};
  EXPECT_EQ(std::get<Evidence>(report.detail), most);
  Report wild{.kind = ReportKind::evidence};
  wild.detail = Evidence{ServerState::hung, INT64_MIN, -1, Millis::min()};
  EXPECT_EQ(facts_of(wild, {}), R"({"state":"hung","left_ms":0})");
}

TEST(Json, progress_document_reports_what_the_model_server_does) {
  const auto document = [](const test::Replayed& after) {
    return progress_document("s", after.judged, description_of({}), after.now + Millis{5},
                             WallTime{Millis{5'000'000}});
  };
  const auto busy = document(test::replay("S R R"));
  EXPECT_NE(
      busy.find(
          R"("server":{"state":"reading","done":2,"total":61440,"leftMs":118000,"since":4998995,"why":"as it was seen"})"),
      std::string::npos)
      << busy;
  const auto hung = document(test::replay("S H"));
  EXPECT_NE(hung.find(R"("stuck":true)"), std::string::npos) << hung;
  EXPECT_NE(hung.find(R"("stuckBy":"F5")"), std::string::npos) << hung;
  for (const char* run : {"S", "S R O", "S R E", "S R !"}) {
    EXPECT_NE(document(test::replay(run)).find(R"("server":null)"), std::string::npos) << run;
  }
}

TEST(Json, progress_document_reports_which_turns_run) {
  const auto after = test::replay("t k p");
  const auto document = progress_document("s", after.judged, description_of({}),
                                          after.now + Millis{5}, WallTime{Millis{5'000'000}});
  EXPECT_TRUE(is_json(document));
  EXPECT_NE(
      document.find(
          R"("turns":[{"turnId":"turn","parentTurnId":"above","depth":1,"startedAt":1001000,"elapsedMs":2005,"currentTool":"shell","currentToolId":null,"toolCallCount":1,"aborting":false}],"tools":[{"name":"shell","callId":null,"turnId":"turn","startedAt":4998995,"elapsedMs":1005,"message":"further","command":null}])"),
      std::string::npos)
      << document;
  const auto asked = test::replay("t a");
  EXPECT_NE(progress_document("s", asked.judged, description_of({}), asked.now, WallTime{})
                .find(R"("cancel":null,"turns":[{"turnId":"turn")"),
            std::string::npos)
      << "the session itself is not to stop";
}

TEST(Json, writer_makes_valid_json_of_any_bytes) {
  std::mt19937 random(test::random_seed());
  for (int i = 0; i < test::repetitions(50'000); ++i) {
    std::string bytes(random() % 30, '\0');
    for (auto& c : bytes)
      c = static_cast<char>(random() % 3 == 0 ? random() : 0xC0 + random() % 64);
    std::string out;
    append_json_string(out, bytes);
    ASSERT_TRUE(is_json(out));
  }
  std::string out;
  append_json_string(out, "a\xff\"\\\n\x01 \xe2\x82\xac");
  EXPECT_EQ(out, "\"a\xEF\xBF\xBD\\\"\\\\\\n\\u0001 \xe2\x82\xac\"");
}

TEST(Json, policy_is_checked_with_the_field_named) {
  EXPECT_EQ(policy_patch_from_json(R"({"stuckThreshold":1})").error().field, "stuckThreshold");
  EXPECT_EQ(policy_patch_from_json(R"({"stuckThreshold":1})").error().code, ErrorCode::invalid);
  EXPECT_EQ(policy_patch_from_json(R"({"heartbeatInterval":"10"})").error().code,
            ErrorCode::malformed);
  EXPECT_EQ(
      policy_patch_from_json(R"({"heartbeatInterval":60000,"unknown":1})")->heartbeat_interval,
      Millis{60'000});
}

/// Reports that may contain numbers; each `#` is the place of one.
constexpr std::string_view numbers_in_reports[] = {
    R"({"kind":"heartbeat","source":"loop","iteration":#})",
    R"({"kind":"heartbeat","source":"sidecar","counters":{"a":#}})",
    R"({"kind":"start","pid":#,"start_ticks":1,"boot_id":"b"})",
    R"({"kind":"start","pid":1,"start_ticks":#,"boot_id":"b"})",
    R"({"kind":"tool_call","name":"t","call_id":"1","deadline_ms":#})",
    R"({"kind":"tool_progress","name":"t","call_id":"1","accepted":#})",
    R"({"kind":"evidence","state":"reading","done":#,"total":#,"left_ms":#})",
    R"({"kind":"budget","current_step":#,"steps_remaining":#,"tool_calls":#})",
    R"({"kind":"budget","tokens":#,"max_tokens":#,"elapsed_ms":#,"duration_ms":#})",
    R"({"kind":"opinion","status":"B","seen_seq":#})",
    R"({"kind":"message","name":"assistant","text":"x","ts_ms":#,"expect_quiet_ms":#})",
    R"({"kind":"wait","waiting_for":"user","provider":"p","until_ms":#,"ts_ms":#})",
    R"({"kind":"limit","limit":"l","limit_value":#,"reached":#})"};

std::string with_number(std::string_view text, std::int64_t number) {
  std::string with;
  for (const char c : text) c == '#' ? with += std::to_string(number) : with += c;
  return with;
}

TEST(Json, a_snapshot_survives_every_number_that_is_accepted) {
  constexpr std::int64_t int32_max = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
  std::set<std::int64_t> edges{-int64_max - 1, int64_max};
  for (const auto bound :
       {std::int64_t{0}, std::int64_t{1} << 30, int32_max, int32_max + 1, std::int64_t{1} << 53}) {
    for (const auto edge : {bound - 1, bound, bound + 1}) edges.insert({edge, -edge});
  }
  int accepted = 0;
  for (const auto text : numbers_in_reports) {
    for (const auto edge : edges) {
      const auto said = with_number(text, edge);
      const auto report = report_from_json(said);
      if (!report || !*report) continue;
      ++accepted;
      test::Agent agent;
      agent.begin("t", "{}", "1").say(**report).begin("u", "{}", "2");
      agent.kind(ReportKind::wait, "user").say(**report);
      Case restored;
      restored.session = 1;
      const auto snapshot = snapshot_of(agent.judged);
      const auto read = read_snapshot(restored, snapshot);
      ASSERT_TRUE(read.ok()) << said << ": " << read.error().message;
      ASSERT_EQ(snapshot_of(restored), snapshot) << said;
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(Json, a_snapshot_survives_every_pause) {
  for (const std::int64_t pause :
       {0LL, 1LL, (1LL << 30) - 1, 1LL << 30, (1LL << 31) - 1, 1LL << 31, 1LL << 45}) {
    for (const auto source : {Source::loop, Source::sidecar, Source::relay, Source::unsaid}) {
      test::Agent agent;
      agent.state("a").beat(source).beat(source).pass(Millis{pause}).beat(source).state("b");
      Case restored;
      restored.session = 1;
      const auto snapshot = snapshot_of(agent.judged);
      const auto read = read_snapshot(restored, snapshot);
      ASSERT_TRUE(read.ok()) << pause << " ms: " << read.error().message;
      ASSERT_EQ(snapshot_of(restored), snapshot) << pause << " ms";
    }
  }
}

TEST(Json, a_snapshot_survives_more_heartbeats_than_are_counted) {
  test::Agent agent;
  Report many{.kind = ReportKind::heartbeat};
  many.detail = Heartbeats{.count = 1LL << 40, .source = Source::loop};
  agent.say(many);
  Case restored;
  restored.session = 1;
  const auto read = read_snapshot(restored, snapshot_of(agent.judged));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(restored.history.loop_beats_since_change, std::numeric_limits<std::int32_t>::max());
}

TEST(Json, snapshot_restores_a_case_exactly) {
  std::mt19937 random(test::random_seed());
  constexpr std::string_view alphabet = "hsbSccrewiux!+mEBttTakkpplRRqHOy";
  for (int i = 0; i < test::repetitions(10'000); ++i) {
    std::string letters;
    for (auto n = random() % 30; n > 0; --n) letters += alphabet[random() % alphabet.size()];
    const auto after = test::replay(letters, {.stuck_threshold = 4});
    Case restored;
    restored.session = 1;
    ASSERT_TRUE(read_snapshot(restored, snapshot_of(after.judged)).ok()) << letters;
    ASSERT_EQ(snapshot_of(restored), snapshot_of(after.judged)) << letters;
    ASSERT_EQ(
        progress_document("s", restored, description_of({.agent = "x"}), after.now, WallTime{}),
        progress_document("s", after.judged, description_of({.agent = "x"}), after.now,
                          WallTime{}));
  }
}

TEST(Json, progress_document_has_the_promised_fields) {
  const auto after = test::replay("S hhhhh");
  const auto document = progress_document("s", after.judged, description_of({}), after.now,
                                          WallTime{after.now.time_since_epoch()});
  EXPECT_TRUE(is_json(document));
  EXPECT_NE(
      document.find(
          R"("alive":true,"stuck":true,"progress":{"heartbeats":5,"stateChanges":1,"lastChange":"step","lastChangeAgo":5000},"currentPhase":null,"iteration":5)"),
      std::string::npos)
      << document;
  EXPECT_NE(document.find(R"("stuckBy":"F1")"), std::string::npos) << document;
  const auto fresh = test::replay("");
  EXPECT_NE(progress_document("s", fresh.judged, description_of({}), after.now, WallTime{})
                .find(R"("lastChange":null,"lastChangeAgo":null)"),
            std::string::npos);
}

}  // namespace
}  // namespace watchdog
