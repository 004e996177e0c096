// Whatever an exporter sends, it becomes valid reports of valid sessions, or an error.

#include <string_view>

#include "codec/json.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
#include "ingest/gzip.h"
#include "ingest/otlp.h"

using namespace watchdog;
using monitor::OtlpEncoding;
using monitor::OtlpSignal;

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"codex"}}]},)"
      R"("scopeLogs":[{"logRecords":[{"timeUnixNano":"1795344134804000000","attributes":[)"
      R"({"key":"event.name","value":{"stringValue":"codex.tool_result"}},)"
      R"({"key":"conversation.id","value":{"stringValue":"s"}},)"
      R"({"key":"tool_name","value":{"stringValue":"sh"}},{"key":"duration_ms","value":{"intValue":"5"}}]}]}]}]})",
      R"({"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7","spanId":"b7","name":"execute_tool x",)"
      R"("startTimeUnixNano":1,"endTimeUnixNano":"2","status":{"code":2,"message":"no"},"attributes":[)"
      R"({"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},)"
      R"({"key":"gen_ai.tool.name","value":{"stringValue":"x"}}]}]}]}]})",
      R"({"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"claude_code.token.usage","sum":)"
      R"({"aggregationTemporality":2,"dataPoints":[{"timeUnixNano":"1795344134804000000","asInt":"5",)"
      R"("attributes":[{"key":"session.id","value":{"stringValue":"s"}},)"
      R"({"key":"type","value":{"stringValue":"input"}}]}]}}]}]}]})",
      std::string("\x0a\x2c\x12\x2a\x12\x28\x09\x01\x00\x00\x00\x00\x00\x00\x00\x2a\x1d\x0a\x1b"
                  "claude_code.user_prompt....",
                  44),
      std::string("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\x56\x0a\x00\x00\x00", 16)};
}

void try_input(std::string_view text) {
  constexpr std::size_t bytes_max = 1'048'576;
  if (const auto plain = monitor::inflated(text, bytes_max))
    FUZZ_REQUIRE(plain->size() <= bytes_max);
  for (const auto signal : {OtlpSignal::logs, OtlpSignal::traces, OtlpSignal::metrics}) {
    for (const auto encoding : {OtlpEncoding::json, OtlpEncoding::protobuf}) {
      const auto records = monitor::otlp_records(signal, encoding, text);
      if (!records) {
        FUZZ_REQUIRE(!records.error().message.empty());
        continue;
      }
      monitor::OtlpMemory memory;
      const auto batches = monitor::otlp_batches(
          *records, WallTime{Millis{1'795'344'134'804}}, memory,
          [](const std::string&) { return monitor::OtlpKnown{}; }, text.substr(0, text.size() % 7));
      for (const auto& batch : batches) {
        FUZZ_REQUIRE(is_session_id(batch.session));
        FUZZ_REQUIRE(check(batch.spec).ok());
        for (const auto& report : batch.reports) {
          Event reported;
          reported.report = report;
          FUZZ_REQUIRE(is_json(to_json(reported)));
        }
      }
    }
  }
}
