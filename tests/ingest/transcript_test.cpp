// Lines of transcripts become reports. Those of Codex are recorded; those of Claude Code follow its
// format. The reports do not depend on where a file is cut, nor on which source is first.
#include "ingest/transcript.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "codec/json.h"
#include "facts/ids.h"
#include "ingest/hooks.h"
#include "ingest/joiner.h"
#include "ingest/long_texts.h"
#include "store/store_reader.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Some time after the recorded lines.
constexpr WallTime transcript_now{Millis{1'795'435'200'000}};

std::vector<std::string> transcript_lines(const std::string& file) {
  std::ifstream stream(std::filesystem::path(PROJECT_ROOT) / "tests/data/transcripts" / file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_FALSE(lines.empty()) << file;
  return lines;
}

TranscriptAgent transcript_agent(const std::string& file) {
  return file.starts_with("codex") ? TranscriptAgent::codex : TranscriptAgent::claude_code;
}

std::string short_form(const Report& report) {
  return std::string(name_of(report.kind)) + (report.name.empty() ? "" : " " + report.name);
}

using ReportedLines = std::map<std::string, std::vector<std::string>>;

ReportedLines reported_by(const std::string& file) {
  Transcript transcript(transcript_agent(file));
  ReportedLines reported;
  for (const auto& line : transcript_lines(file)) {
    const auto batches = transcript.read(line, transcript_now);
    EXPECT_TRUE(batches) << line;
    for (const auto& batch : *batches)
      for (const auto& report : batch.reports)
        reported[batch.session].push_back(short_form(report));
  }
  return reported;
}

const std::string claude_session = "5b1f3c1e-9d1a-4c55-8b8e-0d8f4a6d2c01";

TEST(Transcript, any_text_may_be_long_in_characters_of_any_size) {
  for (const auto* file : {"codex-e401.jsonl", "claude-code.jsonl"}) {
    for (const auto& line : transcript_lines(file)) {
      test::for_each_long_text(json::parse(line), [&](const json& variant) {
        Transcript transcript(transcript_agent(file));
        const auto batches = transcript.read(variant.dump(), transcript_now);
        if (!batches) return;
        for (const auto& batch : *batches)
          for (const auto& report : batch.reports) EXPECT_LE(report.name.size(), 256U) << variant;
      });
    }
  }
}

TEST(Transcript, of_codex_becomes_prompts_calls_answers_tokens_and_rests) {
  const std::vector<std::string> run{
      "user_input", "tool_call exec_command", "tool_result exec_command",
      "budget",     "tool_call exec_command", "tool_result exec_command",
      "budget",     "tool_call exec_command", "tool_result exec_command",
      "budget",     "message assistant",      "budget",
      "idle"};
  EXPECT_EQ(reported_by("codex-tools.jsonl"),
            (ReportedLines{{"01a202cc-15e8-7451-8b63-9a029cff292d", run}}));
}

TEST(Transcript, of_codex_shows_an_interruption) {
  const auto reported = reported_by("codex-interrupt.jsonl");
  ASSERT_EQ(reported.size(), 1U);
  const auto& run = reported.begin()->second;
  EXPECT_EQ(run.back(), "idle interrupted");
  EXPECT_EQ(std::ranges::count(run, "user_input"), 3);
  EXPECT_EQ(std::ranges::count(run, "tool_call exec_command"), 3);
  EXPECT_EQ(std::ranges::count(run, "tool_result exec_command"), 2);
  EXPECT_EQ(std::ranges::count(run, "error exec_command"), 1);
  EXPECT_EQ(std::ranges::count(run, "idle"), 2);
}

TEST(Transcript, of_codex_whose_turn_failed_waits_for_a_login) {
  const std::vector<std::string> run{"user_input", "message error", "wait login"};
  EXPECT_EQ(reported_by("codex-e401.jsonl").begin()->second, run);
}

TEST(Transcript, of_claude_code_becomes_what_its_hooks_would_report_and_more) {
  const std::vector<std::string> run{"user_input",
                                     "budget",  // of the first line of the answer
                                     "message assistant",
                                     "tool_call Bash",
                                     "budget",
                                     "error Bash",
                                     "tool_call Read",
                                     "budget",
                                     "tool_result Read",
                                     "wait overload",
                                     "resume overload",
                                     "tool_call Task",
                                     "budget",
                                     "tool_result Task",
                                     "compaction",
                                     "message assistant",
                                     "budget",
                                     "idle",
                                     "user_input",
                                     "tool_call AskUserQuestion",
                                     "wait input",
                                     "budget",
                                     "tool_result AskUserQuestion",
                                     "tool_call Bash",
                                     "budget",
                                     "error Bash",
                                     "idle interrupted",
                                     "user_input",
                                     "message error",
                                     "wait quota"};
  EXPECT_EQ(reported_by("claude-code.jsonl"),
            (ReportedLines{{claude_session, run}, {claude_session + ":a1b2c3d4", {"end"}}}));
}

TEST(Transcript, counts_an_answer_of_several_lines_once) {
  Transcript transcript(TranscriptAgent::claude_code);
  BudgetFigures newest;
  for (const auto& line : transcript_lines("claude-code.jsonl")) {
    const auto batches = transcript.read(line, transcript_now);
    ASSERT_TRUE(batches);
    for (const auto& batch : *batches)
      for (const auto& report : batch.reports)
        if (const auto* figures = std::get_if<BudgetFigures>(&report.detail)) newest = *figures;
  }
  // 160 of the first answer, 120 each of four, 230 of the one with the long text.
  EXPECT_EQ(newest.tokens, 160 + 4 * 120 + 230);
  EXPECT_EQ(newest.steps, 6);
}

TEST(Transcript, of_a_subagent_is_a_session_below) {
  Transcript transcript(TranscriptAgent::claude_code);
  std::vector<std::string> kinds;
  for (const auto& line : transcript_lines("claude-code-subagent.jsonl")) {
    const auto batches = transcript.read(line, transcript_now);
    ASSERT_TRUE(batches);
    for (const auto& batch : *batches) {
      EXPECT_EQ(batch.session, claude_session + ":a1b2c3d4");
      EXPECT_EQ(batch.spec.parent, claude_session);
      for (const auto& report : batch.reports) kinds.push_back(short_form(report));
    }
  }
  const std::vector<std::string> run{
      "user_input",        "tool_call Grep", "budget", "tool_result Grep",
      "message assistant", "budget",         "idle"};
  EXPECT_EQ(kinds, run);
}

/// The session and its parent that the first lines of a thread of Codex name.
std::pair<std::string, std::string> sessions_of_thread(const std::string& meta) {
  Transcript transcript(TranscriptAgent::codex);
  const auto line = [](const std::string& type, const std::string& payload) {
    return R"({"timestamp":"2026-11-22T10:00:00.000Z","type":")" + type + R"(","payload":)" +
           payload + "}";
  };
  EXPECT_TRUE(transcript.read(line("session_meta", meta), transcript_now));
  const auto batches = transcript.read(
      line("event_msg", R"({"type":"user_message","message":"look around"})"), transcript_now);
  if (!batches || batches->empty()) return {};
  return {batches->front().session, batches->front().spec.parent};
}

TEST(Transcript, of_a_subagent_of_codex_names_it_as_its_hooks_do) {
  using Names = std::pair<std::string, std::string>;
  EXPECT_EQ(sessions_of_thread(R"({"session_id":"root","id":"root","source":"exec"})"),
            Names("root", ""));
  // Codex 0.171.
  EXPECT_EQ(
      sessions_of_thread(
          R"({"session_id":"root","id":"child","parent_thread_id":"root","source":{"subagent":{"thread_spawn":{"parent_thread_id":"root"}}}})"),
      Names("root:child", "root"));
  EXPECT_EQ(
      sessions_of_thread(
          R"({"session_id":"root","id":"grandchild","source":{"subagent":{"thread_spawn":{"parent_thread_id":"child"}}}})"),
      Names("root:grandchild", "root:child"));
  EXPECT_EQ(
      sessions_of_thread(
          R"({"id":"child","source":{"subagent":{"thread_spawn":{"parent_thread_id":"root"}}}})"),
      Names("root:child", "root"))
      << "an older version";
  EXPECT_EQ(sessions_of_thread(R"({"id":"alone","source":"cli"})"), Names("alone", ""));
}

TEST(Transcript, has_the_quota_with_its_end) {
  Transcript transcript(TranscriptAgent::claude_code);
  std::optional<WallTime> until;
  for (const auto& line : transcript_lines("claude-code.jsonl"))
    for (const auto made = transcript.read(line, transcript_now); const auto& batch : *made)
      for (const auto& report : batch.reports)
        if (report.name == wait_reports::quota) until = report.until;
  // 11:30 UTC on the day of the line, not of the reading.
  ASSERT_TRUE(until);
  EXPECT_EQ(*until, (WallTime{std::chrono::sys_days{std::chrono::year{2026} / 11 / 22} +
                              std::chrono::hours{11} + std::chrono::minutes{30}}));
}

TEST(Transcript, is_titled_by_its_first_prompt_and_not_by_commands) {
  Transcript transcript(TranscriptAgent::claude_code);
  for (const auto& line : transcript_lines("claude-code.jsonl"))
    (void)transcript.read(line, transcript_now);
  EXPECT_EQ(transcript.title_of(claude_session), "Make the tests green");
}

TEST(Transcript, without_the_end_of_a_turn_rests_when_nothing_follows) {
  Transcript transcript(TranscriptAgent::claude_code);
  const auto line = [](const char* type, const std::string& rest) {
    return std::string(R"({"sessionId":"s","timestamp":"2026-11-22T10:00:00Z","type":")") + type +
           "\"," + rest + "}";
  };
  (void)transcript.read(line("user", R"("message":{"content":"hello"})"), transcript_now);
  EXPECT_TRUE(transcript.pause().empty()) << "the model has not answered";
  (void)transcript.read(
      line("assistant",
           R"("message":{"id":"m","stop_reason":null,"content":[{"type":"text","text":"hi"}]})"),
      transcript_now);
  const auto rested = transcript.pause();
  ASSERT_EQ(rested.size(), 1U);
  EXPECT_EQ(short_form(rested.front().reports.front()), "idle relay");
  EXPECT_TRUE(transcript.pause().empty()) << "it said so";
}

TEST(Transcript, saved_after_any_line_goes_on_as_if_it_had_not_been) {
  const auto seed = test::random_seed();
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (const auto* file : {"claude-code.jsonl", "claude-code-subagent.jsonl", "codex-tools.jsonl",
                           "codex-interrupt.jsonl", "codex-e401.jsonl"}) {
    Transcript whole(transcript_agent(file));
    Transcript cut(transcript_agent(file));
    for (const auto& line : transcript_lines(file)) {
      const auto expected = whole.read(line, transcript_now);
      const auto found = cut.read(line, transcript_now);
      ASSERT_EQ(expected->size(), found->size()) << line;
      for (std::size_t at = 0; at < expected->size(); ++at) {
        const auto& one = (*expected)[at];
        const auto& other = (*found)[at];
        ASSERT_EQ(one.session, other.session);
        ASSERT_EQ(to_json(one.spec), to_json(other.spec));
        ASSERT_EQ(one.reports.size(), other.reports.size()) << line;
        for (std::size_t i = 0; i < one.reports.size(); ++i) {
          EXPECT_EQ(one.reports[i].event_id, other.reports[i].event_id);
          EXPECT_EQ(one.reports[i].name, other.reports[i].name);
          EXPECT_EQ(one.reports[i].content, other.reports[i].content);
        }
      }
      if (random() % 3 == 0) cut = Transcript(transcript_agent(file), cut.save());
    }
  }
}

TEST(Transcript, keeps_its_memory_bounded) {
  Transcript transcript(TranscriptAgent::claude_code);
  for (int i = 0; i < 5'000; ++i) {
    const auto id = std::to_string(i);
    const json line{{"type", "assistant"},
                    {"sessionId", "s" + std::to_string(i % 100)},
                    {"timestamp", "2026-11-22T10:00:00Z"},
                    {"message",
                     {{"id", std::string(2'000, 'm') + id},
                      {"content", {{{"type", "tool_use"}, {"id", "t" + id}, {"name", "Bash"}}}}}}};
    (void)transcript.read(line.dump(), transcript_now);
  }
  EXPECT_LT(transcript.save().size(), 64U * 1024);
}

TEST(Transcript, takes_anything_for_what_it_is) {
  Transcript transcript(TranscriptAgent::claude_code);
  EXPECT_FALSE(transcript.read("", transcript_now));
  EXPECT_FALSE(transcript.read("no json", transcript_now));
  EXPECT_FALSE(transcript.read("[1]", transcript_now));
  EXPECT_FALSE(transcript.read(std::string(64, '\0'), transcript_now));
  EXPECT_FALSE(transcript.read(std::string(100'000, '['), transcript_now));
  EXPECT_FALSE(transcript.read("{\"type\":\"user\",\"sessionId\":\"\xff\"}", transcript_now));
  for (
      const auto* line :
      {R"({"type":["user"],"sessionId":"s"})", R"({"type":"user","sessionId":5,"message":{}})",
       R"({"type":"user","sessionId":"s","message":[]})",
       R"({"type":"assistant","sessionId":"s","message":{"content":[5,null,{"type":"tool_use"}]}})",
       R"({"type":"assistant","sessionId":"s","timestamp":"9999-99-99T99:99:99Z","message":{"usage":{"input_tokens":-9223372036854775808,"output_tokens":18446744073709551615}}})"}) {
    const auto batches = transcript.read(line, transcript_now);
    ASSERT_TRUE(batches) << line;
    for (const auto& batch : *batches) {
      EXPECT_TRUE(is_session_id(batch.session));
      for (const auto& report : batch.reports) EXPECT_LE(*report.at, transcript_now);
    }
  }
}

/// A store behind the joiner.
class JoinedTranscript {
 public:
  void hooks() {
    std::ifstream stream(std::filesystem::path(PROJECT_ROOT) /
                         "tests/data/recordings/codex-approval.jsonl");
    for (std::string line; std::getline(stream, line);) {
      auto event = hook_event(HookAgent::codex, json::parse(line)["event"].dump());
      ASSERT_TRUE(event);
      keep({.session = event->session,
            .creation = Creation::attach,
            .spec = event->spec,
            .reports = event->reports,
            .by = ReportOrigin::hooks});
    }
  }
  void transcript() {
    Transcript transcript(TranscriptAgent::codex);
    for (const auto& line : transcript_lines("codex-interrupt.jsonl"))
      for (auto made = transcript.read(line, transcript_now); auto& batch : *made)
        keep(std::move(batch));
  }
  std::map<std::string, int> kinds() {
    auto reader = StoreReader::open(dir_ / "w.db");
    EXPECT_TRUE(reader);
    std::map<std::string, int> kinds;
    for (const auto& event : test::all_events(*reader, "01a202d2-134d-7f70-9d5c-0a82dd803456"))
      ++kinds[std::string(name_of(event.report.kind))];
    return kinds;
  }

 private:
  void keep(Batch batch) {
    if (batch.reports.empty()) return;
    joiner_.join(batch);
    const auto receipts = store_.append({&batch, 1});
    ASSERT_TRUE(receipts && receipts->front());
  }
  test::TempDir dir_;
  Store store_ = std::move(*Store::open({.database = dir_ / "w.db"}));
  Joiner joiner_;
};

TEST(Transcript, beside_hooks_of_the_same_session_counts_nothing_twice) {
  for (const bool hooks_first : {true, false}) {
    JoinedTranscript both;
    if (hooks_first) both.hooks();
    both.transcript();
    if (!hooks_first) both.hooks();
    auto kinds = both.kinds();
    EXPECT_EQ(kinds["user_input"], 3) << hooks_first;
    EXPECT_EQ(kinds["tool_call"], 3) << hooks_first;
    EXPECT_EQ(kinds["tool_result"] + kinds["error"], 3) << hooks_first;
  }
}

TEST(Transcript, beside_telemetry_has_its_tokens_from_one_of_them) {
  Joiner joiner;
  const auto use = [](ReportOrigin by, std::int64_t tokens) {
    Report report;
    report.kind = ReportKind::budget;
    BudgetFigures figures;
    figures.tokens = tokens;
    report.detail = figures;
    return Batch{.session = "s", .reports = {report}, .by = by};
  };
  auto first = use(ReportOrigin::otlp, 100);
  joiner.join(first);
  EXPECT_EQ(first.reports.size(), 1U);
  for (int i = 0; i < Joiner::other_uses_max; ++i) {
    auto other = use(ReportOrigin::transcript, 100 + i);
    joiner.join(other);
    EXPECT_TRUE(other.reports.empty()) << "the session's tokens come from its telemetry";
    if (i % 4 != 0) continue;
    auto own = use(ReportOrigin::otlp, 200);
    joiner.join(own);
    EXPECT_EQ(own.reports.size(), 1U);
  }
  auto newest = use(ReportOrigin::otlp, 250);
  joiner.join(newest);
  for (int i = 0; i < Joiner::other_uses_max + 1; ++i) {
    auto other = use(ReportOrigin::transcript, 300);
    joiner.join(other);
    const auto expected = i == Joiner::other_uses_max ? 1U : 0U;
    EXPECT_EQ(other.reports.size(), expected) << "the telemetry is off after some of them";
  }
}

TEST(Transcript, leaves_states_out_that_are_older_than_the_session) {
  Batch batch;
  for (const auto kind : {ReportKind::idle, ReportKind::message, ReportKind::wait}) {
    auto& report = batch.reports.emplace_back();
    report.kind = kind;
    report.at = transcript_now;
  }
  drop_old_states(batch, transcript_now);
  EXPECT_EQ(batch.reports.size(), 3U);
  drop_old_states(batch, transcript_now + Millis{1});
  ASSERT_EQ(batch.reports.size(), 1U);
  EXPECT_EQ(batch.reports.front().kind, ReportKind::message);
}

/// The kinds of the reports of lines, in their order.
std::vector<std::string> kinds_of(TranscriptAgent agent, const std::vector<std::string>& lines) {
  constexpr WallTime now{Millis{1'795'435'200'000}};
  std::vector<std::string> kinds;
  Transcript transcript(agent);
  const auto add = [&](const std::vector<Batch>& batches) {
    for (const auto& batch : batches)
      for (const auto& report : batch.reports) kinds.push_back(short_form(report));
  };
  for (const auto& line : lines) add(transcript.read(line, now).value());
  add(transcript.pause());
  return kinds;
}

TEST(Transcript, of_codex_tells_failures_by_the_head_of_an_output) {
  struct Row {
    const char* output;
    bool fails;
  };
  const Row rows[] = {
      {R"({\"output\":\"x\",\"metadata\":{\"exit_code\":2}})", true},
      {R"({\"output\":\"x\",\"metadata\":{\"exit_code\":0}})", false},
      {R"(Chunk ID: a\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nx)", true},
      {R"(Chunk ID: a\nProcess exited with code 0\nOutput:\nProcess exited with code 1)", false},
      {R"(Exit code: 127\nWall time: 0 seconds\nOutput:\nno such command)", true},
      {R"(Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 3)", false},
      {R"(a log\nExit code: 3)", false},
      {R"(apply_patch verification failed: no such lines)", true},
      {R"(docs say: apply_patch verification failed)", false},
      {R"(aborted by user after 3.2s)", true},
      {R"(docs/faq.md:7: aborted by user)", false},
      {R"(Chunk ID: a\nProcess running with session ID 8\nOutput:\n)", false},
  };
  for (const auto& row : rows) {
    const auto kinds = kinds_of(
        TranscriptAgent::codex,
        {R"({"type":"session_meta","timestamp":"2026-11-22T10:00:00Z","payload":{"id":"s"}})",
         R"({"type":"response_item","timestamp":"2026-11-22T10:00:01Z","payload":{"type":"function_call","name":"sh","call_id":"c"}})",
         std::string(
             R"({"type":"response_item","timestamp":"2026-11-22T10:00:02Z","payload":{"type":"function_call_output","call_id":"c","output":")") +
             row.output + "\"}}"});
    ASSERT_EQ(kinds.size(), 2U) << row.output;
    EXPECT_EQ(kinds.back(), row.fails ? "error sh" : "tool_result sh") << row.output;
  }
}

TEST(Transcript, gives_a_command_the_limit_that_its_call_declares) {
  Transcript transcript(TranscriptAgent::claude_code);
  const auto read = transcript.read(
      R"({"type":"assistant","sessionId":"s","timestamp":"2026-11-22T10:00:00Z","message":{"content":[)"
      R"({"type":"tool_use","id":"t","name":"Bash","input":{"command":"make","timeout":300000}}]}})",
      transcript_now);
  ASSERT_TRUE(read);
  std::int64_t limit_ms = 0;
  for (const auto& batch : *read)
    for (const auto& report : batch.reports)
      if (report.deadline) limit_ms += report.deadline->count();
  EXPECT_EQ(limit_ms, 300'000);
}

TEST(Transcript, whose_answer_may_be_the_last_rests_at_the_next_prompt_or_after_a_long_time) {
  const std::string begin =
      R"({"type":"user","sessionId":"s","timestamp":"2026-11-22T10:00:00Z","message":{"content":"a"}})";
  const std::string answer =
      R"({"type":"assistant","sessionId":"s","timestamp":"2026-11-22T10:00:05Z","message":{"stop_reason":null,"content":[{"type":"text","text":"b"}]}})";
  const auto call = [](const std::string& time) {
    return R"({"type":"assistant","sessionId":"s","timestamp":"2026-11-22T)" + time +
           R"(Z","message":{"stop_reason":"tool_use","content":[{"type":"tool_use","id":"t","name":"Bash"}]}})";
  };
  const std::string prompt =
      R"({"type":"user","sessionId":"s","timestamp":"2026-11-22T10:01:00Z","message":{"content":"c"}})";
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kinds_of(TranscriptAgent::claude_code, {begin, answer, prompt}),
            (Kinds{"user_input", "message assistant", "idle relay", "user_input"}));
  EXPECT_EQ(kinds_of(TranscriptAgent::claude_code, {begin, answer, call("10:01:00")}),
            (Kinds{"user_input", "message assistant", "tool_call Bash"}));
  EXPECT_EQ(kinds_of(TranscriptAgent::claude_code, {begin, answer, call("10:30:00")}),
            (Kinds{"user_input", "message assistant", "idle relay", "tool_call Bash"}));
}

TEST(Transcript, of_a_stream_ends_as_its_last_line_says) {
  const auto ends = [](const std::string& result) {
    return kinds_of(
        TranscriptAgent::claude_code,
        {R"({"type":"system","subtype":"init","session_id":"s","tools":[],"uuid":"a"})",
         R"({"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{"content":[{"type":"text","text":"b"}]}})",
         R"({"type":"result","session_id":"s",)" + result + "}"});
  };
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(ends(R"("subtype":"success","result":"b")"),
            (Kinds{"message assistant", "idle", "end"}));
  EXPECT_EQ(ends(R"("subtype":"error_max_turns")"), (Kinds{"message assistant", "idle", "end"}));
  EXPECT_EQ(ends(R"("subtype":"success","is_error":true,"result":"Credit balance is too low")"),
            (Kinds{"message assistant", "message error", "wait billing", "end"}));
}

}  // namespace
}  // namespace watchdog::monitor
