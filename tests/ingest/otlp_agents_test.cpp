// Records of single agents, as their documentation has them.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "ingest/otlp.h"
#include "ingest/otlp_memory.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using Attributes = std::map<const char*, std::string>;
/// Kind, and name if there is one, of the reports of each session.
using OtlpReports = std::map<std::string, std::vector<std::string>>;

json listed(const Attributes& attributes) {
  json list = json::array();
  for (const auto& [key, text] : attributes)
    list.push_back({{"key", key}, {"value", {{"stringValue", text}}}});
  return list;
}

json resource_of(const char* service) {
  return {{"attributes", listed({{"service.name", service}})}};
}

std::vector<Batch> mapped(OtlpSignal signal, const json& body, OtlpMemory& memory) {
  constexpr WallTime received{Millis{1'795'344'400'000}};
  const auto records = otlp_records(signal, OtlpEncoding::json, body.dump());
  EXPECT_TRUE(records.ok());
  if (!records) return {};
  return otlp_batches(*records, received, memory, [](const std::string&) { return OtlpKnown{}; });
}

std::vector<Batch> of_log(const char* service, const Attributes& attributes, OtlpMemory& memory) {
  const json record = {{"timeUnixNano", "1795344301000000000"}, {"attributes", listed(attributes)}};
  const json scope = {{"logRecords", json::array({record})}};
  const json resource = {{"resource", resource_of(service)}, {"scopeLogs", json::array({scope})}};
  return mapped(OtlpSignal::logs, {{"resourceLogs", json::array({resource})}}, memory);
}

json span_of(const char* id, const char* parent, const char* name, const Attributes& attributes) {
  return {{"traceId", "55555555555555555555555555555555"},
          {"spanId", id},
          {"parentSpanId", parent},
          {"name", name},
          {"startTimeUnixNano", "1795344301000000000"},
          {"endTimeUnixNano", "1795344302000000000"},
          {"status", {{"code", 0}}},
          {"attributes", listed(attributes)}};
}

std::string named(const Report& report) {
  return std::string(name_of(report.kind)) + (report.name.empty() ? "" : " " + report.name);
}

TEST(OtlpAgents, a_websocket_of_codex_is_a_stream_and_its_failure_a_wait) {
  OtlpMemory memory;
  std::vector<std::string> kinds;
  const auto add = [&](Attributes attributes) {
    attributes["conversation.id"] = "s";
    for (const auto& batch : of_log("codex", attributes, memory))
      for (const auto& report : batch.reports) kinds.push_back(named(report));
  };
  add({{"event.name", "codex.websocket_connect"}, {"success", "true"}});
  add({{"event.name", "codex.websocket_request"}, {"success", "true"}});
  EXPECT_TRUE(kinds.empty());
  for (const auto* kind : {"response.created", "response.output_text.delta", "response.completed"})
    add({{"event.name", "codex.websocket_event"}, {"event.kind", kind}});
  EXPECT_EQ(kinds, (std::vector<std::string>{"heartbeat", "heartbeat", "heartbeat", "idle relay"}));
  kinds.clear();
  add({{"event.name", "codex.websocket_request"},
       {"success", "false"},
       {"http.response.status_code", "429"},
       {"error.message", "too many requests"}});
  add({{"event.name", "codex.websocket_connect"},
       {"success", "false"},
       {"error.message", "connection refused"}});
  EXPECT_EQ(kinds, (std::vector<std::string>{"wait quota", "message error"}));
}

TEST(OtlpAgents, a_fallback_and_a_recovery_of_gemini_are_shown) {
  const std::vector<std::tuple<const char*, const char*, const char*>> rows = {
      {"gemini_cli.flash_fallback", "", "the agent goes on with a fallback model"},
      {"gemini_cli.agent.recovery_attempt", "true", "the agent recovered from an error"},
      {"gemini_cli.agent.recovery_attempt", "false", "an attempt to recover from an error failed"}};
  for (const auto& [event, success, words] : rows) {
    OtlpMemory memory;
    const auto batches = of_log(
        "gemini-cli", {{"event.name", event}, {"session.id", "s"}, {"success", success}}, memory);
    ASSERT_EQ(batches.size(), 1U) << event;
    ASSERT_EQ(batches[0].reports.size(), 1U) << event;
    EXPECT_EQ(batches[0].reports[0].content, words);
  }
}

TEST(OtlpAgents, both_copilots_follow_the_conventions) {
  // They have spans of hooks, and attributes of their own.
  for (const auto* service : {"copilot-chat", "github-copilot"}) {
    const auto of = [](const char* operation, Attributes more = {}) {
      more["gen_ai.operation.name"] = operation;
      more["gen_ai.conversation.id"] = "conv";
      return more;
    };
    const json spans = {
        span_of("0000000000000001", "0000000000000009", "chat gpt-5",
                of("chat", {{"gen_ai.usage.input_tokens", "100"},
                            {"gen_ai.usage.output_tokens", "7"},
                            {"gen_ai.provider.name", "github"},
                            {"copilot_chat.request.max_prompt_tokens", "128000"},
                            {"copilot_chat.session_id", "conv"}})),
        span_of("0000000000000002", "0000000000000009", "execute_tool run_in_terminal",
                of("execute_tool",
                   {{"gen_ai.tool.name", "run_in_terminal"}, {"gen_ai.tool.call.id", "call_1"}})),
        span_of("0000000000000003", "0000000000000009", "execute_hook PreToolUse",
                of("execute_hook", {{"copilot_chat.hook_type", "PreToolUse"},
                                    {"github.copilot.hook.decision", "pass"}})),
        span_of("0000000000000004", "0000000000000009", "create_agent copilot", of("create_agent")),
        span_of("0000000000000005", "0000000000000009", "plan", of("plan")),
        span_of("0000000000000009", "", "invoke_agent copilot",
                of("invoke_agent",
                   {{"copilot_chat.turn_count", "1"}, {"gen_ai.usage.input_tokens", "100"}}))};
    const json scope = {{"spans", spans}};
    const json resource = {{"resource", resource_of(service)},
                           {"scopeSpans", json::array({scope})}};
    OtlpMemory memory;
    OtlpReports found;
    for (const auto& batch :
         mapped(OtlpSignal::traces, {{"resourceSpans", json::array({resource})}}, memory))
      for (const auto& report : batch.reports) found[batch.session].push_back(named(report));
    EXPECT_EQ(found, (OtlpReports{{"conv",
                                   {"budget", "tool_call run_in_terminal",
                                    "tool_result run_in_terminal", "idle"}}}))
        << service;
  }
}

TEST(OtlpAgents, copilot_in_an_editor_names_a_session_by_its_start_and_in_requests_without_one) {
  OtlpMemory memory;
  auto batches =
      of_log("copilot-chat", {{"event.name", "copilot_chat.session.start"}, {"session.id", "conv"}},
             memory);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].session, "conv");
  EXPECT_TRUE(of_log("copilot-chat",
                     {{"event.name", "copilot_chat.tool.call"}, {"gen_ai.tool.name", "readFile"}},
                     memory)
                  .empty())
      << "the span has the same call";
  const json spans = json::array({span_of("0000000000000001", "", "chat gpt-5",
                                          {{"gen_ai.operation.name", "chat"},
                                           {"gen_ai.usage.input_tokens", "1"},
                                           {"copilot_chat.session_id", "conv"}})});
  const json scope = {{"spans", spans}};
  const json resource = {{"resource", resource_of("copilot-chat")},
                         {"scopeSpans", json::array({scope})}};
  batches = mapped(OtlpSignal::traces, {{"resourceSpans", json::array({resource})}}, memory);
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].session, "conv");
}

}  // namespace
}  // namespace watchdog::monitor
