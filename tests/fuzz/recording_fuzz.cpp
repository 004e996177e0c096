// Whatever is in a recording of another program, it becomes valid reports of valid sessions.

#include <string_view>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
#include "ingest/recording_steps.h"

using namespace watchdog;
using namespace watchdog::monitor;

std::vector<std::string> fuzz_seeds() {
  return {
      R"([{"id":2,"timestamp":"2026-11-22T10:00:02","source":"agent","action":"run","args":{"command":"ls","thought":"t"},)"
      R"("tool_call_metadata":{"function_name":"f","tool_call_id":"c"}},{"cause":2,"observation":"run","content":"no",)"
      R"("extras":{"metadata":{"exit_code":2}}}])",
      R"({"kind":"ActionEvent","thought":[],"tool_name":"t","tool_call_id":"c","action":{"command":"ls"}})",
      R"({"trajectory":[{"thought":"t","action":"ls","observation":"a"}],"history":[{"role":"user","content":"x"}],)"
      R"("info":{"exit_status":"exit_cost","model_stats":{"tokens_sent":7,"instance_cost":0.5,"api_calls":2}}})",
      R"({"messages":[{"role":"assistant","content":"","extra":{"timestamp":1795341601.5},"tool_calls":[{"id":"c",)"
      R"("function":{"name":"sh","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"<returncode>1<"}]})",
      R"({"runs":[{"id":"r","run_type":"chain","name":"a","inputs":{"messages":[{"type":"human","content":"x"}]},)"
      R"("start_time":"2026-11-22T10:00:00","child_runs":[{"id":"t","run_type":"tool","inputs":{"input":1},)"
      R"("outputs":{"output":"o"},"end_time":"2026-11-22T10:00:01+02:00"},{"run_type":"llm","total_tokens":1e300,)"
      R"("end_time":"2026-11-22T10:00:01","outputs":{"generations":[[{"text":"x"}]]}}]}]})",
      R"({"id":"t","name":"a","sessionId":"s","observations":[{"id":"o","type":"TOOL","startTime":"2026-11-22T10:00:03Z",)"
      R"("level":"ERROR","statusMessage":"m","input":"{\"q\":1}"},{"type":"GENERATION","endTime":1795341601500,)"
      R"("output":{"role":"assistant","content":"x"},"usageDetails":{"total":9},"totalCost":0.1}]})",
      R"({"info":{"id":"ses_1"},"messages":[{"info":{"role":"assistant","time":{"created":5}},"parts":[{"type":"tool",)"
      R"("tool":"t","callID":"c","state":{"status":"error","error":"x","time":{"start":1,"end":2}}}]}]})",
      R"({"sessionId":"s","projectHash":"p","messages":[{"id":"a","type":"gemini","content":"x","toolCalls":[{"id":"t",)"
      R"("name":"n","status":"error","result":[{"functionResponse":{"response":{"error":"no"}}}]}],"tokens":{"total":7}}]})",
      R"({"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n"}],)"
      R"("tool_calls":[{"id":"c","function":{"name":"n","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"y"}]})",
      R"([{"ts":1770793200000,"type":"say","say":"tool","text":"{\"tool\":\"t\",\"content\":\"x\"}"}])",
      R"({"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":{}}]}})",
      R"({"schema_version":"ATIF-v1.2","steps":[{"source":"agent","tool_calls":[{"tool_call_id":"c","function_name":"f"}],)"
      R"("observation":{"results":[{"source_call_id":"c","content":"x"}]},"metrics":{"prompt_tokens":1}}]})",
      R"({"raw":{"type":"agent.tool_use","id":"e","name":"n","input":{},"processed_at":"2026-11-22T10:00:00Z"}})",
      R"({"ts":"2026-11-22T10:00:00Z","dir":"to_tui","kind":"codex_event","payload":{"msg":{"type":"exec_command_end",)"
      R"("call_id":"c","exit_code":1}}})",
      R"("# aider chat started at 2026-11-22 10:00:00")",
      R"({"loglines":[{"type":"user","message":{"content":"x"}},{"type":"result","subtype":"success","num_turns":1}]})",
      R"({"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"0000000000000002",)"
      R"("name":"execute_tool x","startTimeUnixNano":"1795341601000000000","endTimeUnixNano":"1795341602000000000","attributes":[)"
      R"({"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}}]}]}]}]})"};
}

void try_input(std::string_view text) {
  if (!check_json(text)) return;
  const auto value = nlohmann::json::parse(text, nullptr, false);
  if (value.is_discarded()) return;
  (void)guess_of(value);
  for (const auto& row : recording_rows()) {
    const auto format = row.format;
    (void)row.is_one(value);
    const auto reader = value_reader(format);
    StepList steps("file", format);
    // The second time it is as another line of the file.
    for (int line = 1; line <= 2; ++line) {
      steps.begin_value(line);
      const auto done = reader->read(value, text, steps);
      FUZZ_REQUIRE(done.ok() || !done.error().message.empty());
    }
    reader->finish(steps);
    for (const auto& step : steps.finish()) {
      FUZZ_REQUIRE(is_session_id(step.session->id));
      FUZZ_REQUIRE(check(step.session->spec).ok());
      FUZZ_REQUIRE(step.report.name.size() <= 256 && step.report.call_id.size() <= 256);
      Event reported;
      reported.report = step.report;
      FUZZ_REQUIRE(is_json(to_json(reported)));
    }
  }
}
