// Telemetry of agents becomes reports. The requests of Codex, Gemini
// CLI and opencode are recorded. Those of Claude Code and of the conventions follow their
// documentation.
#include "ingest/otlp.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "codec/json.h"
#include "ingest/gzip.h"
#include "ingest/hooks.h"
#include "ingest/joiner.h"
#include "ingest/long_texts.h"
#include "store/event_reader.h"
#include "store/store_reader.h"
#include "support/otlp_encoder.h"
#include "support/temp_dir.h"
#include "watchdog/health.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// Some seconds after the recorded requests.
constexpr WallTime received{Millis{1'795'344'400'000}};

OtlpKnown nothing_known(const std::string& /*session*/) {
  return {};
}

std::vector<json> lines_of(const std::string& file) {
  std::ifstream stream(std::filesystem::path(PROJECT_ROOT) / "tests/data/otlp" / file);
  std::vector<json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  EXPECT_FALSE(lines.empty()) << file;
  return lines;
}

std::vector<OtlpRecord> records_of(const json& line, OtlpEncoding encoding = OtlpEncoding::json) {
  const auto path = line["path"].get<std::string>();
  const auto signal = path == "/v1/logs"     ? OtlpSignal::logs
                      : path == "/v1/traces" ? OtlpSignal::traces
                                             : OtlpSignal::metrics;
  const auto body = encoding == OtlpEncoding::json ? line["body"].dump()
                                                   : test::OtlpEncoder::encoded(line["body"]);
  auto records = otlp_records(signal, encoding, body);
  EXPECT_TRUE(records.ok()) << (records ? "" : records.error().message);
  return records ? *records : std::vector<OtlpRecord>{};
}

/// All reports of a file, by session: kind, and name if there is one.
std::map<std::string, std::vector<std::string>> reported(
    const std::string& file, OtlpEncoding encoding = OtlpEncoding::json) {
  OtlpMemory memory;
  std::map<std::string, std::vector<std::string>> sessions;
  std::map<std::string, BudgetFigures> used;
  for (const auto& line : lines_of(file)) {
    const auto known = [&](const std::string& session) { return OtlpKnown{.used = used[session]}; };
    for (const auto& batch : otlp_batches(records_of(line, encoding), received, memory, known)) {
      auto& list = sessions[batch.session];
      for (const auto& report : batch.reports) {
        if (report.kind == ReportKind::heartbeat) continue;
        if (const auto* figures = std::get_if<BudgetFigures>(&report.detail))
          used[batch.session] = *figures;
        list.push_back(std::string(name_of(report.kind)) +
                       (report.name.empty() ? "" : " " + report.name));
      }
    }
  }
  return sessions;
}

using Reported = std::map<std::string, std::vector<std::string>>;

const Reported of_codex = {
    {"01a202d9-6d73-7250-b7bb-32a518cc6577",
     {"user_input", "budget", "tool_call exec_command", "tool_result exec_command", "budget",
      "tool_call exec_command", "tool_result exec_command", "budget", "tool_call exec_command",
      "tool_result exec_command", "idle relay", "budget"}}};

TEST(Otlp, recorded_logs_become_what_their_agent_did) {
  EXPECT_EQ(reported("codex-tools.jsonl"), of_codex);
  EXPECT_EQ(reported("gemini-cli-tools.jsonl"),
            (Reported{{"9872a6a6-0d8b-46d6-9add-8609530fdaa1",
                       {"user_input", "budget", "tool_call run_shell_command",
                        "tool_result run_shell_command", "budget", "tool_call read_file",
                        "tool_result read_file", "budget", "tool_call run_shell_command",
                        "tool_result run_shell_command", "budget", "idle relay"}}}));
  EXPECT_EQ(reported("claude-code-tools.jsonl"),
            (Reported{{"7c1c3d1e-0000-4000-8000-00000000c1a0",
                       {"user_input", "budget", "tool_call Bash", "tool_result Bash",
                        "wait overload", "resume overload", "budget", "tool_call Edit",
                        "error Edit", "compaction", "budget", "idle"}}}));
}

TEST(Otlp, any_text_may_be_long_in_characters_of_any_size) {
  for (const auto* file : {"codex-e401.jsonl", "gemini-cli-e401.jsonl", "conventions.jsonl"}) {
    for (const auto& line : lines_of(file)) {
      test::for_each_long_text(line["body"], [&](const json& body) {
        OtlpMemory memory;
        const json variant{{"path", line["path"]}, {"body", body}};
        for (const auto& batch : otlp_batches(records_of(variant), received, memory, nothing_known))
          for (const auto& report : batch.reports) EXPECT_LE(report.name.size(), 256U) << body;
      });
    }
  }
}

TEST(Otlp, a_refused_login_is_one_wait_for_a_person) {
  OtlpMemory memory;
  std::string waiting_for;
  int waits = 0;
  for (const auto& line : lines_of("codex-e401.jsonl")) {
    for (const auto& batch :
         otlp_batches(records_of(line), received, memory,
                      [&](const std::string&) { return OtlpKnown{.waiting_for = waiting_for}; })) {
      for (const auto& report : batch.reports) {
        if (report.kind != ReportKind::wait) continue;
        ++waits;
        waiting_for = report.name;
      }
    }
  }
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(waiting_for, wait_reports::login);
  EXPECT_EQ(reported("gemini-cli-e401.jsonl").begin()->second,
            (std::vector<std::string>{"user_input", "wait login"}));
}

TEST(Otlp, spans_become_calls_answers_and_turns) {
  EXPECT_EQ(reported("opencode-tools.jsonl").begin()->second,
            (std::vector<std::string>{"budget", "tool_call bash", "tool_result bash", "budget",
                                      "tool_call read", "tool_result read", "budget"}));
  EXPECT_EQ(
      reported("conventions.jsonl"),
      (Reported{{"conv-copilot", {"budget", "tool_call readFile", "tool_result readFile", "idle"}},
                {"trace-33333333333333333333333333333333",
                 {"tool_call search", "tool_result search", "budget"}},
                {"graph-1", {"tool_call weather", "error weather", "budget"}}}));
}

json text_attribute(const char* name, const std::string& text) {
  return {{"key", name}, {"value", {{"stringValue", text}}}};
}

/// A span as an exporter sends it. `attributes`: names and texts.
json span(const char* id, const char* parent, const char* name,
          const std::map<const char*, std::string>& attributes) {
  json list = json::array();
  for (const auto& [key, text] : attributes) list.push_back(text_attribute(key, text));
  return {{"traceId", "55555555555555555555555555555555"},
          {"spanId", id},
          {"parentSpanId", parent},
          {"name", name},
          {"startTimeUnixNano", "1795344301000000000"},
          {"endTimeUnixNano", "1795344302000000000"},
          {"status", {{"code", 0}}},
          {"attributes", std::move(list)}};
}

json trace_of(const std::vector<json>& spans, const std::string& service = "my-agent") {
  return {{"path", "/v1/traces"},
          {"body",
           {{"resourceSpans",
             {{{"resource", {{"attributes", {text_attribute("service.name", service)}}}},
               {"scopeSpans", {{{"spans", spans}}}}}}}}}};
}

json log_of(const std::string& service, const std::map<const char*, std::string>& attributes) {
  json list = json::array();
  for (const auto& [key, text] : attributes) list.push_back(text_attribute(key, text));
  return {{"path", "/v1/logs"},
          {"body",
           {{"resourceLogs",
             {{{"resource", {{"attributes", {text_attribute("service.name", service)}}}},
               {"scopeLogs",
                {{{"logRecords",
                   {{{"timeUnixNano", "1795344301000000000"}, {"attributes", list}}}}}}}}}}}}};
}

/// A point of a sum of tokens. `temporality`: 1 since the point before, 2 since the start.
json tokens_of(const char* metric, const char* session, const char* kind, int total,
               int temporality, const char* time) {
  const json point{
      {"timeUnixNano", time},
      {"asInt", std::to_string(total)},
      {"attributes", {text_attribute("session.id", session), text_attribute("type", kind)}}};
  return {
      {"path", "/v1/metrics"},
      {"body",
       {{"resourceMetrics",
         {{{"scopeMetrics",
            {{{"metrics",
               {{{"name", metric},
                 {"sum",
                  {{"aggregationTemporality", temporality}, {"dataPoints", {point}}}}}}}}}}}}}}}};
}

std::vector<Batch> batches_of(const json& line, OtlpMemory& memory,
                              const OtlpLookUp& known = nothing_known,
                              std::string_view session = {}) {
  return otlp_batches(records_of(line), received, memory, known, session);
}

TEST(Otlp, agents_below_a_call_or_an_agent_are_children) {
  OtlpMemory memory;
  const auto line = trace_of({
      span("000000000000000a", "0000000000000009", "execute_tool grep",
           {{"gen_ai.operation.name", "execute_tool"}, {"gen_ai.tool.name", "grep"}}),
      span("0000000000000009", "0000000000000008", "invoke_agent helper",
           {{"gen_ai.operation.name", "invoke_agent"}, {"gen_ai.agent.name", "helper"}}),
      span("0000000000000008", "0000000000000001", "execute_tool task",
           {{"gen_ai.operation.name", "execute_tool"}, {"gen_ai.tool.name", "task"}}),
      span("0000000000000001", "", "invoke_agent main",
           {{"gen_ai.operation.name", "invoke_agent"},
            {"gen_ai.agent.name", "main"},
            {"gen_ai.conversation.id", "c1"}}),
  });
  const auto batches = batches_of(line, memory);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0].session, "c1:0000000000000009");
  EXPECT_EQ(batches[0].spec.parent, "c1");
  EXPECT_EQ(batches[0].spec.agent, "helper");
  ASSERT_EQ(batches[0].reports.size(), 3U);
  EXPECT_EQ(batches[0].reports.back().kind, ReportKind::end);
  EXPECT_EQ(batches[1].session, "c1");
  EXPECT_EQ(batches[1].spec.agent, "main");
  ASSERT_EQ(batches[1].reports.size(), 3U);
  EXPECT_EQ(batches[1].reports.front().name, "task");
  EXPECT_EQ(batches[1].reports.back().kind, ReportKind::idle);
}

TEST(Otlp, spans_above_each_other_in_a_circle_end) {
  OtlpMemory memory;
  const std::map<const char*, std::string> agent{{"gen_ai.operation.name", "invoke_agent"}};
  const auto line = trace_of({span("000000000000000a", "000000000000000b", "invoke_agent", agent),
                              span("000000000000000b", "000000000000000c", "invoke_agent", agent),
                              span("000000000000000c", "000000000000000a", "invoke_agent", agent)});
  EXPECT_FALSE(batches_of(line, memory).empty());
}

TEST(Otlp, nested_instrumentations_of_one_call_or_answer_count_once) {
  OtlpMemory memory;
  const auto line = trace_of({
      span("0000000000000003", "0000000000000002", "tools/call search",
           {{"gen_ai.operation.name", "execute_tool"},
            {"mcp.method.name", "tools/call"},
            {"gen_ai.tool.name", "search_web"}}),
      span("0000000000000002", "0000000000000001", "execute_tool search",
           {{"gen_ai.operation.name", "execute_tool"}, {"gen_ai.tool.name", "search"}}),
      span("0000000000000005", "0000000000000004", "openai.chat",
           {{"llm.request.type", "chat"}, {"gen_ai.usage.input_tokens", "7"}}),
      span("0000000000000004", "0000000000000001", "ChatOpenAI.chat",
           {{"llm.request.type", "chat"}, {"gen_ai.usage.input_tokens", "7"}}),
  });
  const auto batches = batches_of(line, memory);
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].reports.size(), 3U);
  EXPECT_EQ(batches[0].reports[0].name, "search");
  EXPECT_EQ(std::get<BudgetFigures>(batches[0].reports[2].detail).tokens, 7);
}

TEST(Otlp, a_user_names_the_session) {
  OtlpMemory memory;
  const std::map<const char*, std::string> prompt{{"event.name", "codex.user_prompt"},
                                                  {"conversation.id", "own"}};
  EXPECT_EQ(batches_of(log_of("codex", prompt), memory, nothing_known, "mine")[0].session, "mine");
  EXPECT_EQ(batches_of(log_of("codex", prompt), memory, nothing_known, "a b/\xff")[0].session,
            "a-b--");
  auto named = prompt;
  named["watchdog.session"] = "nightly";
  EXPECT_EQ(batches_of(log_of("codex", named), memory, nothing_known, "mine")[0].session,
            "nightly");
}

TEST(Otlp, a_prompt_that_its_agent_hides_has_no_text) {
  for (const auto& [service, event, hidden] : std::vector<std::array<const char*, 3>>{
           {"codex", "codex.user_prompt", "[REDACTED]"},
           {"claude-code", "claude_code.user_prompt", "<REDACTED>"}}) {
    OtlpMemory memory;
    const auto batches = batches_of(
        log_of(service, {{"event.name", event}, {"session.id", "s"}, {"prompt", hidden}}), memory);
    ASSERT_EQ(batches.size(), 1U) << service;
    EXPECT_EQ(batches[0].reports.at(0).kind, ReportKind::user_input);
    EXPECT_EQ(batches[0].reports.at(0).content, "") << service;
  }
}

TEST(Otlp, a_person_who_rejects_a_call_is_shown_and_one_who_allows_it_is_not) {
  for (const auto& [by, decision, is_shown] :
       std::vector<std::tuple<const char*, const char*, bool>>{{"user_reject", "reject", true},
                                                               {"User", "denied", true},
                                                               {"User", "abort", true},
                                                               {"User", "approved", false},
                                                               {"config", "reject", false}}) {
    OtlpMemory memory;
    const auto batches =
        batches_of(log_of("claude-code", {{"event.name", "claude_code.tool_decision"},
                                          {"session.id", "s"},
                                          {"tool_name", "Bash"},
                                          {"source", by},
                                          {"decision", decision}}),
                   memory);
    const auto& reports = batches.at(0).reports;
    ASSERT_EQ(reports.size(), is_shown ? 1U : 0U) << by << decision;
    if (!is_shown) continue;
    EXPECT_EQ(reports[0].content, "rejected the call of Bash");
  }
}

TEST(Otlp, a_stream_that_shows_neither_text_nor_calls_ends_no_turn) {
  struct Row {
    std::vector<std::string> kinds;
    bool rests;
  };
  const std::vector<Row> rows = {
      {{"response.created", "response.output_text.delta", "response.completed"}, true},
      {{"response.created", "response.output_item.added", "response.completed"}, false},
      {{"response.created", "response.function_call_arguments.delta", "response.completed"}, false},
      {{"response.created", "response.output_text.delta", "response.custom_tool_call_input.delta",
        "response.completed"},
       false},
      {{"response.output_text.delta", "response.completed"}, false}};
  for (const auto& row : rows) {
    OtlpMemory memory;
    int rests = 0;
    for (const auto& kind : row.kinds)
      for (const auto& batch : batches_of(log_of("codex", {{"event.name", "codex.sse_event"},
                                                           {"conversation.id", "s"},
                                                           {"event.kind", kind}}),
                                          memory))
        for (const auto& report : batch.reports) rests += report.kind == ReportKind::idle ? 1 : 0;
    EXPECT_EQ(rests, row.rests ? 1 : 0) << row.kinds.at(1);
  }
}

TEST(Otlp, later_requests_of_a_trace_belong_to_its_session) {
  OtlpMemory memory;
  const auto first = trace_of({span("0000000000000001", "0000000000000009", "chat",
                                    {{"gen_ai.operation.name", "chat"},
                                     {"gen_ai.conversation.id", "c2"},
                                     {"gen_ai.usage.input_tokens", "1"}})});
  const auto second =
      trace_of({span("0000000000000002", "0000000000000009", "execute_tool",
                     {{"gen_ai.operation.name", "execute_tool"}, {"gen_ai.tool.name", "ls"}})});
  EXPECT_EQ(batches_of(first, memory).at(0).session, "c2");
  EXPECT_EQ(batches_of(second, memory).at(0).session, "c2");
}

TEST(Otlp, an_error_attribute_that_says_no_is_not_an_error) {
  for (const auto& [said, failed] :
       {std::pair("false", false), {"0", false}, {"", false}, {"true", true}, {"timeout", true}}) {
    OtlpMemory memory;
    const auto ls = span(
        "0000000000000001", "0000000000000009", "execute_tool",
        {{"gen_ai.operation.name", "execute_tool"}, {"gen_ai.tool.name", "ls"}, {"error", said}});
    int errors = 0;
    for (const auto& batch : batches_of(trace_of({ls}), memory))
      for (const auto& report : batch.reports) errors += report.kind == ReportKind::error ? 1 : 0;
    EXPECT_EQ(errors, failed ? 1 : 0) << said;
  }
}

TEST(Otlp, subagents_of_claude_code_know_the_one_above_them) {
  OtlpMemory memory;
  const auto batches = batches_of(log_of("claude-code", {{"event.name", "claude_code.tool_result"},
                                                         {"session.id", "s"},
                                                         {"agent_id", "b"},
                                                         {"parent_agent_id", "a"},
                                                         {"tool_name", "Bash"}}),
                                  memory);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].session, "s:b");
  EXPECT_EQ(batches[0].spec.parent, "s:a");
}

TEST(Otlp, a_quota_has_the_end_that_the_error_names_and_its_provider) {
  OtlpMemory memory;
  const auto batches =
      batches_of(log_of("claude-code", {{"event.name", "claude_code.api_error"},
                                        {"session.id", "s"},
                                        {"status_code", "429"},
                                        {"gen_ai.system", "anthropic"},
                                        {"error", "limit reached, try again in 90 minutes"}}),
                 memory);
  ASSERT_EQ(batches.size(), 1U);
  const auto& wait = batches[0].reports.at(0);
  EXPECT_EQ(wait.kind, ReportKind::wait);
  EXPECT_EQ(wait.name, wait_reports::quota);
  EXPECT_EQ(wait.until, WallTime{Millis{1'795'344'301'000 + 90 * 60'000}});
  EXPECT_EQ(wait.provider, "anthropic");
}

/// The tokens of the session after each request.
std::vector<std::int64_t> tokens_after(const std::vector<json>& lines, OtlpEncoding encoding,
                                       BudgetFigures used = {}) {
  OtlpMemory memory;
  std::vector<std::int64_t> all;
  for (const auto& line : lines) {
    const auto known = [&](const std::string&) { return OtlpKnown{.used = used}; };
    for (const auto& batch : otlp_batches(records_of(line, encoding), received, memory, known))
      for (const auto& report : batch.reports) used = std::get<BudgetFigures>(report.detail);
    all.push_back(used.tokens);
  }
  return all;
}

TEST(Otlp, metrics_report_the_tokens_of_a_session_that_nothing_else_reports) {
  using Totals = std::vector<std::int64_t>;
  const auto at = [](int total, const char* time, int temporality = 2, const char* kind = "input") {
    return tokens_of("claude_code.token.usage", "s", kind, total, temporality, time);
  };
  const auto a = at(100, "1795344301000000000");
  const auto b = at(30, "1795344301000000000", 2, "output");
  const auto c = at(150, "1795344302000000000");
  for (const auto encoding : {OtlpEncoding::json, OtlpEncoding::protobuf}) {
    EXPECT_EQ(tokens_after({a, b, c, c}, encoding), (Totals{100, 130, 180, 180}));
    // A counter that begins again.
    EXPECT_EQ(tokens_after({c, a}, encoding), (Totals{150, 250}));
    // Parts; one comes twice. Tokens from a cache count nowhere.
    const auto part = at(10, "1795344301000000000", 1);
    EXPECT_EQ(tokens_after({part, part, at(5, "1795344302000000000", 1),
                            at(9, "1795344302000000000", 1, "cacheRead")},
                           encoding),
              (Totals{10, 10, 15, 15}));
    // Logs report the same answers.
    EXPECT_EQ(tokens_after({a}, encoding, {.steps = 1, .tokens = 7}), (Totals{7}));
    // After a restart of the monitor the total so far is not added again.
    EXPECT_EQ(tokens_after({c, at(170, "1795344303000000000")}, encoding, {.tokens = 150}),
              (Totals{150, 170}));
    EXPECT_EQ(tokens_after({tokens_of("other.metric", "s", "input", 5, 1, "1")}, encoding),
              (Totals{0}));
  }
  OtlpMemory memory;
  const auto model = log_of(
      "claude-code",
      {{"event.name", "claude_code.api_request"}, {"session.id", "s"}, {"input_tokens", "100"}});
  const auto batches = batches_of(
      model, memory, [](const std::string&) { return OtlpKnown{.used = {.tokens = 100}}; });
  EXPECT_EQ(std::get<BudgetFigures>(batches.at(0).reports.at(0).detail).tokens, 100);
}

TEST(Otlp, both_encodings_mean_the_same) {
  for (const auto* file : {"codex-tools.jsonl", "gemini-cli-tools.jsonl", "opencode-tools.jsonl",
                           "claude-code-tools.jsonl", "conventions.jsonl"})
    EXPECT_EQ(reported(file), reported(file, OtlpEncoding::protobuf)) << file;
}

TEST(Otlp, a_call_begins_its_duration_before_its_record) {
  OtlpMemory memory;
  const auto batches = otlp_batches(records_of(lines_of("claude-code-tools.jsonl").front()),
                                    received, memory, nothing_known);
  const auto& reports = batches.at(0).reports;
  const auto call = std::ranges::find(reports, ReportKind::tool_call, &Report::kind);
  ASSERT_NE(call, reports.end());
  EXPECT_EQ(*std::next(call)->at - *call->at, Millis{700});
  EXPECT_EQ(call->call_id, "toolu_01A");
}

TEST(Otlp, personal_attributes_are_not_even_read) {
  for (const auto* name :
       {"user.email", "user.id", "user.account_uuid", "user.account_id", "enduser.id",
        "organization.id", "installation.id", "host.name", "process.owner"})
    EXPECT_FALSE(is_read_attribute(name)) << name;
  for (const auto& line : lines_of("claude-code-tools.jsonl"))
    for (const auto& record : records_of(line))
      for (const auto& [name, text] : record.attributes) {
        EXPECT_EQ(text.find("ann@"), std::string::npos) << name;
        EXPECT_EQ(text.find("user_01ANN"), std::string::npos) << name;
      }
}

TEST(Otlp, wrong_types_and_unknown_members_are_ignored) {
  const auto records = otlp_records_from_json(
      OtlpSignal::logs,
      R"({"resourceLogs":[7,{"resource":[],"scopeLogs":{}},{"scopeLogs":[{"logRecords":[1,)"
      R"({"new":{},"attributes":[3,{"key":4},{"key":"event.name","value":{"stringValue":"codex.user_prompt"}},)"
      R"({"key":"conversation.id","value":{"stringValue":"s"}},{"key":"prompt","value":{"later":1}}]}]}]}]})");
  ASSERT_TRUE(records.ok());
  OtlpMemory memory;
  const auto batches = otlp_batches(*records, received, memory, nothing_known);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].session, "s");
  EXPECT_FALSE(otlp_records_from_json(OtlpSignal::logs, "[]").ok());
  EXPECT_FALSE(otlp_records_from_json(OtlpSignal::logs, R"({"resourceLogs":{}})").ok());
  EXPECT_FALSE(otlp_records_from_protobuf(OtlpSignal::logs, "\x0a\x7f").ok());
  EXPECT_TRUE(otlp_records_from_protobuf(OtlpSignal::metrics, "").ok());
  // A number where a message belongs is skipped.
  const auto skipped = otlp_records_from_protobuf(OtlpSignal::logs, "\x08\x01");
  ASSERT_TRUE(skipped.ok());
  EXPECT_TRUE(skipped->empty());
}

/// A message of OTLP's protobuf within another one.
std::string in_field(int number, const std::string& content) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  auto length = content.size();
  for (; length > 127; length >>= 7U) text += static_cast<char>(length | 128U);
  return text + static_cast<char>(length) + content;
}

TEST(Otlp, a_request_needs_bounded_memory_however_small_its_records_are) {
  const auto request = [](std::size_t records, std::size_t name_bytes, OtlpEncoding encoding) {
    const std::string name(name_bytes, 'x');
    if (encoding == OtlpEncoding::json) {
      const json shared{{"key", "service.name"}, {"value", {{"stringValue", name}}}};
      const json resource{{"resource", {{"attributes", {shared}}}},
                          {"scopeLogs", {{{"logRecords", json(records, json::object())}}}}};
      return json{{"resourceLogs", {resource}}}.dump();
    }
    std::string scope;
    for (std::size_t i = 0; i < records; ++i) scope += in_field(2, "");
    const auto shared = in_field(1, in_field(1, "service.name") + in_field(2, in_field(1, name)));
    // The attributes of a resource may come after its records.
    return in_field(1, in_field(2, scope) + in_field(1, shared));
  };
  for (const auto encoding : {OtlpEncoding::json, OtlpEncoding::protobuf}) {
    const auto read = [&](std::size_t records, std::size_t name_bytes) {
      return otlp_records(OtlpSignal::logs, encoding, request(records, name_bytes, encoding));
    };
    const auto some = read(OtlpLimits::records_max, 10);
    ASSERT_TRUE(some.ok()) << some.error().message;
    EXPECT_EQ(some->size(), OtlpLimits::records_max);
    EXPECT_EQ(some->back().attributes.at("service.name"), "xxxxxxxxxx");
    EXPECT_EQ(read(OtlpLimits::records_max + 1, 10).error().code, ErrorCode::exhausted);
    EXPECT_EQ(read(1'000, 100'000).error().code, ErrorCode::exhausted);
    EXPECT_TRUE(read(100, 100'000).ok());
  }
}

TEST(Otlp, a_state_that_is_older_than_the_session_is_left_out) {
  OtlpMemory memory;
  const auto lines = lines_of("claude-code-tools.jsonl");
  const auto later = [](const std::string&) { return OtlpKnown{.newest = received}; };
  EXPECT_TRUE(
      otlp_batches(records_of(lines.back()), received, memory, later).at(0).reports.empty());
}

/// A store behind the joiner.
class Kept {
 public:
  void post(const std::string& file) {
    for (const auto& line : lines_of(file))
      for (auto& batch : otlp_batches(records_of(line), received, *memory_, nothing_known))
        append(std::move(batch));
  }
  void hook(const json& body) {
    auto event = hook_event(HookAgent::claude_code, body.dump());
    ASSERT_TRUE(event.ok());
    append({.session = event->session,
            .creation = Creation::attach,
            .spec = event->spec,
            .reports = event->reports,
            .by = ReportOrigin::hooks});
  }
  void restart() {
    store_.emplace(std::move(*Store::open({.database = dir_ / "w.db"})));
    joiner_.emplace();
    memory_.emplace();
  }
  /// Without heartbeats.
  std::vector<Event> events() {
    std::vector<Event> all;
    auto reader = StoreReader::open(dir_ / "w.db");
    const auto row = reader->session(session_);
    const auto page = EventReader(*reader).page(row->key, 0, 1'000, std::nullopt, 1'000'000);
    for (const auto& event : page->events)
      if (event.report.kind != ReportKind::heartbeat) all.push_back(event);
    return all;
  }
  int count(ReportKind kind) {
    return static_cast<int>(std::ranges::count_if(
        events(), [kind](const Event& event) { return event.report.kind == kind; }));
  }

 private:
  void append(Batch batch) {
    session_ = batch.session;
    joiner_->join(batch);
    auto receipts = store_->append({&batch, 1});
    ASSERT_TRUE(receipts && receipts->front());
  }

  test::TempDir dir_;
  std::optional<Store> store_{std::move(*Store::open({.database = dir_ / "w.db"}))};
  std::optional<Joiner> joiner_{std::in_place};
  std::optional<OtlpMemory> memory_{std::in_place};
  std::string session_;
};

TEST(Otlp, a_record_that_comes_again_is_stored_once_also_after_a_restart) {
  for (const auto* file :
       {"codex-tools.jsonl", "gemini-cli-tools.jsonl", "claude-code-tools.jsonl"}) {
    Kept kept;
    kept.post(file);
    const auto once = kept.events().size();
    kept.post(file);
    EXPECT_EQ(kept.events().size(), once) << file;
    kept.restart();
    kept.post(file);
    EXPECT_EQ(kept.events().size(), once) << file;
  }
}

TEST(Otlp, hooks_and_telemetry_of_one_session_count_once) {
  const std::string session = "7c1c3d1e-0000-4000-8000-00000000c1a0";
  const auto by_hooks = [&](Kept& kept) {
    const auto hook = [&](const char* name, json more = json::object()) {
      more.update({{"session_id", session}, {"hook_event_name", name}});
      kept.hook(more);
    };
    hook("UserPromptSubmit", {{"prompt", "mend the build"}});
    hook(
        "PreToolUse",
        {{"tool_name", "Bash"}, {"tool_use_id", "toolu_01A"}, {"tool_input", {{"command", "ls"}}}});
    hook("PostToolUse",
         {{"tool_name", "Bash"}, {"tool_use_id", "toolu_01A"}, {"tool_response", "a.txt"}});
  };
  for (const bool hooks_first : {true, false}) {
    Kept kept;
    if (hooks_first) by_hooks(kept);
    kept.post("claude-code-tools.jsonl");
    if (!hooks_first) by_hooks(kept);
    kept.post("claude-code-tools.jsonl");
    EXPECT_EQ(kept.count(ReportKind::tool_call), 2) << hooks_first;
    EXPECT_EQ(kept.count(ReportKind::tool_result), 1) << hooks_first;
    EXPECT_EQ(kept.count(ReportKind::user_input), 1) << hooks_first;
  }
}

TEST(Otlp, silence_proves_nothing) {
  for (const auto* file : {"codex-tools.jsonl", "gemini-cli-tools.jsonl", "opencode-tools.jsonl"}) {
    Kept kept;
    kept.post(file);
    Case judged;
    std::vector<Transition> changes;
    for (const auto& event : kept.events()) {
      judged.fold(event, changes);
      for (const auto hours : {0, 1, 10, 100}) {
        const auto kind =
            judge(judged.history, *judged.policy, event.tick + Millis{3'600'000LL * hours}).kind;
        EXPECT_NE(kind, HealthKind::stuck) << file;
        EXPECT_NE(kind, HealthKind::silent) << file;
      }
    }
  }
}

TEST(Otlp, calls_without_arguments_are_no_loop) {
  Case judged;
  std::vector<Transition> changes;
  for (int at = 1; at <= 60; ++at) {
    Event event{.seq = at, .tick = Instant{Millis{at * 1'000}}};
    event.report.kind = at % 2 == 1 ? ReportKind::tool_call : ReportKind::tool_result;
    event.report.name = "Bash";
    event.report.call_id = "c" + std::to_string((at + 1) / 2);
    mark(event.report);
    judged.fold(event, changes);
    EXPECT_NE(judged.health.kind, HealthKind::looping) << at;
    EXPECT_NE(judged.health.kind, HealthKind::stuck) << at;
  }
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string gzip(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<unsigned char*>(gzip.data());
  stream.avail_out = static_cast<uInt>(gzip.size());
  deflate(&stream, Z_FINISH);
  gzip.resize(stream.total_out);
  deflateEnd(&stream);
  return gzip;
}

TEST(Gzip, a_body_is_inflated_up_to_its_limit) {
  const auto gzip = deflated("some text");
  EXPECT_EQ(*inflated(gzip, 9), "some text");
  EXPECT_EQ(*inflated(gzip + gzip, 100), "some textsome text");
  EXPECT_EQ(inflated(gzip, 8).error().code, ErrorCode::exhausted);
  const auto bomb = deflated(std::string(64U * 1024 * 1024, ' '));
  EXPECT_LT(bomb.size(), 100'000U);
  EXPECT_EQ(inflated(bomb, 1024 * 1024).error().code, ErrorCode::exhausted);
  EXPECT_EQ(inflated(gzip.substr(0, gzip.size() - 1), 100).error().code, ErrorCode::malformed);
  EXPECT_EQ(inflated("", 100).error().code, ErrorCode::malformed);
  EXPECT_EQ(inflated("no gzip", 100).error().code, ErrorCode::malformed);
}

}  // namespace
}  // namespace watchdog::monitor
