// Recordings of other programs become reports. The texts follow the documentation of each program.
#include "ingest/recording.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "ingest/bounded_text.h"
#include "ingest/long_texts.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

/// 2026-11-22T10:00:00Z
constexpr std::int64_t begin_ms = 1'795'341'600'000;

/// A report as `session kind name call: content @seconds`. Parts that it does not have are left
/// out.
std::string text_of(const RecordedStep& step) {
  const auto& report = step.report;
  auto text = step.session->id + " " + std::string(name_of(report.kind));
  if (!report.name.empty()) text += " " + report.name;
  if (!report.call_id.empty()) text += " " + report.call_id;
  if (const auto* used = std::get_if<BudgetFigures>(&report.detail))
    text += " steps=" + std::to_string(used->steps) + " tokens=" + std::to_string(used->tokens);
  if (const auto* outcome = std::get_if<Outcome>(&report.detail))
    text += " " + std::string(name_of(outcome->kind)) + " " + outcome->reason;
  if (!report.content.empty()) text += ": " + report.content;
  if (report.ts_ms) text += " @" + std::to_string((*report.ts_ms - begin_ms) / 1'000);
  return text;
}

struct ReadRecording {
  RecordingFormat format = RecordingFormat::watchdog;
  std::vector<std::string> steps;
  std::string agent;
  std::optional<Error> error;
};

class Recordings : public testing::Test {
 protected:
  ReadRecording read(std::string_view text, std::optional<RecordingFormat> format = {}) {
    std::ofstream(file_, std::ios::binary) << text;
    return read_file(format);
  }
  ReadRecording read_file(std::optional<RecordingFormat> format = {}) {
    ReadRecording found;
    auto recording = open_recording(file_, format);
    if (!recording) {
      found.error = recording.error();
      return found;
    }
    found.format = recording->format;
    while (true) {
      auto step = recording->reader->next();
      if (!step) found.error = step.error();
      const auto& unread = recording->reader->unread();
      if (!found.error && unread.count > 0) found.error = unread.first.front();
      if (!step || !*step) return found;
      found.steps.push_back(text_of(**step));
      found.agent = (*step)->session->spec.agent;
      EXPECT_TRUE(check((*step)->session->spec).ok());
    }
  }
  std::string mistake(const ReadRecording& found) {
    if (!found.error) return {};
    auto text = found.error->message;
    if (const auto at = text.find(file_.string()); at != std::string::npos)
      text.replace(at, file_.string().size(), "FILE");
    return text;
  }

  test::TempDir folder_;
  std::filesystem::path file_ = folder_.path() / "run.json";
};

struct RecordingSample {
  const char* what;
  RecordingFormat format;
  const char* agent;
  const char* text;
  std::vector<std::string> steps;  ///< Without the session before them.
  const char* session = "";        ///< Empty: that of the file's name.
};

const RecordingSample samples[] = {
    {"OpenHands 0",
     RecordingFormat::openhands,
     "openhands",
     R"([{"id":0,"timestamp":"2026-11-22T10:00:00","source":"user","action":"message","args":{"content":"mend"}},
{"id":1,"timestamp":"2026-11-22T10:00:01","source":"agent","action":"recall","args":{"query":"x"}},
{"id":2,"timestamp":"2026-11-22T10:00:02","source":"agent","action":"run","args":{"command":"ls","thought":"look"},
 "tool_call_metadata":{"function_name":"bash","tool_call_id":"c1"}},
{"id":3,"timestamp":"2026-11-22T10:00:03","source":"agent","cause":2,"observation":"run","content":"no",
 "extras":{"metadata":{"exit_code":2}}},
{"id":4,"timestamp":"2026-11-22T10:00:04","source":"agent","action":"read","args":{"path":"a"}},
{"id":5,"timestamp":"2026-11-22T10:00:05","source":"agent","cause":4,"observation":"read","content":"text","extras":{}},
{"id":6,"timestamp":"2026-11-22T10:00:06","source":"agent","observation":"agent_state_changed","content":"",
 "extras":{"agent_state":"awaiting_user_confirmation"}},
{"id":7,"timestamp":"2026-11-22T10:00:07","source":"agent","action":"finish","args":{"final_thought":"done"}}])",
     {"user_input: mend @0", "message assistant: look @2",
      R"(tool_call bash c1: {"command":"ls"} @2)", "error bash c1: no @3",
      R"(tool_call read event-4: {"path":"a"} @4)", "tool_result read event-4: text @5",
      "wait approval @6", "message assistant: done @7", "idle @7"}},
    {"OpenHands 0, a row of an evaluation",
     RecordingFormat::openhands,
     "openhands",
     R"({"instance_id":"task-1","history":[[{"id":1,"action":"run","args":{"command":"ls"}},)"
     R"({"id":2,"cause":1,"observation":"error","content":"bad"}]]})",
     {R"(tool_call run event-1: {"command":"ls"})", "error run event-1: bad"},
     "task-1"},
    {"OpenHands 1",
     RecordingFormat::openhands,
     "openhands",
     R"({"kind":"MessageEvent","timestamp":"2026-11-22T10:00:00","source":"user","llm_message":{"content":[{"type":"text","text":"mend"}]}}
{"kind":"ActionEvent","timestamp":"2026-11-22T10:00:01","thought":[],"tool_name":"terminal","tool_call_id":"c1","action":{"kind":"T","command":"ls"}}
{"kind":"ObservationEvent","timestamp":"2026-11-22T10:00:02","tool_name":"terminal","tool_call_id":"c1","observation":{"content":[{"type":"text","text":"no"}],"is_error":true}}
{"kind":"Condensation","timestamp":"2026-11-22T10:00:03"}
{"kind":"PauseEvent","timestamp":"2026-11-22T10:00:04"}
)",
     {"user_input: mend @0", R"(tool_call terminal c1: {"command":"ls"} @1)",
      "error terminal c1: no @2", "compaction @3", "idle interrupted @4"}},
    {"SWE-agent",
     RecordingFormat::swe_agent,
     "swe-agent",
     R"~({"trajectory":[{"thought":"look","action":"ls -F\n","observation":"a"},
{"thought":"","action":"","observation":"say a command"},{"action":"$x","observation":"no"}],
"history":[{"role":"user","content":"demo","is_demo":true},{"role":"user","content":"mend"}],
"info":{"exit_status":"submitted (exit_cost)","model_stats":{"tokens_sent":7,"tokens_received":3,"api_calls":2}}})~",
     {"user_input: mend", "message assistant: look", "tool_call ls step-1: ls -F\n",
      "tool_result ls step-1: a", "message environment: say a command", "tool_call bash step-2: $x",
      "tool_result bash step-2: no", "budget steps=2 tokens=10",
      "idle error: submitted (exit_cost)", "end incomplete submitted (exit_cost)"}},
    {"mini-SWE-agent",
     RecordingFormat::swe_agent,
     "mini-swe-agent",
     R"({"trajectory_format":"mini-swe-agent-1","messages":[{"role":"system","content":"s"},{"role":"user","content":"mend"},
{"role":"assistant","content":"so:\n```bash\nls\n```","extra":{"timestamp":1795341601.5}},
{"role":"user","content":"<returncode>1</returncode>","extra":{"timestamp":1795341602}},
{"role":"assistant","content":"","tool_calls":[{"id":"c2","function":{"name":"sh","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c2","content":"<returncode>0</returncode>"}],"info":{"exit_status":"Submitted"}})",
     {"user_input: mend @1", "message assistant: so:\n```bash\nls\n``` @1",
      "tool_call bash step-1: ls @1", "error bash step-1: <returncode>1</returncode> @2",
      "tool_call sh c2: {} @2", "tool_result sh c2: <returncode>0</returncode> @2", "idle @2",
      "end completed task_complete @2"}},
    {"LangSmith, the inner runs first",
     RecordingFormat::langsmith,
     "asker",
     R"({"id":"t","trace_id":"r","parent_run_id":"r","run_type":"tool","name":"find","inputs":{"input":"q"},"outputs":null,"start_time":"2026-11-22T10:00:03","end_time":"2026-11-22T10:00:04","error":"late"}
{"id":"l","trace_id":"r","parent_run_id":"r","run_type":"llm","name":"m","inputs":{},"outputs":{"generations":[[{"text":"I ask."}]]},"start_time":"2026-11-22T10:00:01","end_time":"2026-11-22T10:00:02","total_tokens":12}
{"id":"r","trace_id":"r","run_type":"chain","name":"asker","inputs":{"messages":[{"type":"human","content":"ask"}]},"outputs":{},"start_time":"2026-11-22T10:00:00","end_time":"2026-11-22T10:00:05","extra":{"metadata":{"thread_id":"thread-7"}}}
)",
     {"user_input: ask @0", "message assistant: I ask. @2", "budget steps=1 tokens=12 @2",
      "tool_call find t: q @3", "error find t: late @4", "idle @5"},
     "thread-7"},
    {"LangSmith, runs in a run",
     RecordingFormat::langsmith,
     "asker",
     R"([{"id":"r","run_type":"chain","name":"asker","inputs":{"question":"ask"},"start_time":"2026-11-22T10:00:00",
"child_runs":[{"id":"t","run_type":"tool","name":"find","inputs":{"q":1},"outputs":{"output":"found"},
"start_time":"2026-11-22T10:00:01","end_time":"2026-11-22T10:00:02"}]}])",
     {"user_input: ask @0", R"(tool_call find t: {"q":1} @1)", "tool_result find t: found @2"},
     "r"},
    {"Langfuse, a trace",
     RecordingFormat::langfuse,
     "asker",
     R"({"id":"trace-1","name":"asker","timestamp":"2026-11-22T10:00:00Z","input":{"question":"ask"},"sessionId":"chat-3",
"observations":[{"id":"o2","traceId":"trace-1","type":"TOOL","name":"find","startTime":"2026-11-22T10:00:03Z",
"endTime":"2026-11-22T10:00:04Z","level":"ERROR","statusMessage":"late","input":{"q":"x"}},
{"id":"o1","traceId":"trace-1","type":"GENERATION","name":"m","startTime":"2026-11-22T10:00:01Z",
"endTime":"2026-11-22T10:00:02Z","output":{"role":"assistant","content":"I ask."},"usageDetails":{"total":12}}]})",
     {"user_input: ask @0", "message assistant: I ask. @2", "budget steps=1 tokens=12 @2",
      R"(tool_call find o2: {"q":"x"} @3)", "error find o2: late @4", "idle @4"},
     "chat-3"},
    {"Langfuse, a list of traces",
     RecordingFormat::langfuse,
     "asker",
     R"([{"id":"trace-1","name":"asker","timestamp":"2026-11-22T10:00:00Z","input":"ask","sessionId":"chat-3",
"observations":[{"id":"o1","traceId":"trace-1","type":"TOOL","name":"find","startTime":"2026-11-22T10:00:01Z",
"endTime":"2026-11-22T10:00:02Z","input":{"q":"x"},"output":"found"}]},
{"id":"trace-2","name":"asker","timestamp":"2026-11-22T10:00:05Z","input":"more","sessionId":"chat-3",
"observations":[{"id":"o2","traceId":"trace-2","type":"TOOL","name":"find","startTime":"2026-11-22T10:00:06Z",
"endTime":"2026-11-22T10:00:07Z","input":{"q":"y"},"output":"none"}]}])",
     {"user_input: ask @0", R"(tool_call find o1: {"q":"x"} @1)", "tool_result find o1: found @2",
      "idle @2", "user_input: more @5", R"(tool_call find o2: {"q":"y"} @6)",
      "tool_result find o2: none @7", "idle @7"},
     "chat-3"},
    {"Langfuse, the export",
     RecordingFormat::langfuse,
     "asker",
     R"({"id":"o1","trace_id":"trace-1","type":"TOOL","name":"find","parent_observation_id":"o0","start_time":"2026-11-22 10:00:01.000","end_time":"2026-11-22 10:00:02.000","input":"{\"q\":\"x\"}","output":"found"}
{"id":"o0","trace_id":"trace-1","type":"AGENT","name":"asker","start_time":"2026-11-22 10:00:00.000","end_time":"2026-11-22 10:00:03.000","input":"ask"}
)",
     {"user_input: ask @0", R"(tool_call find o1: {"q":"x"} @1)", "tool_result find o1: found @2",
      "idle @3"},
     "trace-1"},
    {"Codex",
     RecordingFormat::codex,
     "codex",
     R"({"type":"session_meta","timestamp":"2026-11-22T10:00:00Z","payload":{"id":"s","cwd":"/p"}}
{"type":"response_item","timestamp":"2026-11-22T10:00:02Z","payload":{"type":"function_call","name":"sh","arguments":"{}","call_id":"c"}}
)",
     {},
     "s"},
    {"Claude Code",
     RecordingFormat::claude_code,
     "claude-code",
     R"({"type":"user","sessionId":"s","timestamp":"2026-11-22T10:00:00.123Z","message":{"content":"mend"}}
)",
     {},
     "s"},
    {"OpenTelemetry",
     RecordingFormat::otlp,
     "asker",
     R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"asker"}}]},"scopeSpans":[{"spans":[{)"
     R"("traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"0000000000000002","name":"execute_tool find",)"
     R"("startTimeUnixNano":"1795341601000000000","endTimeUnixNano":"1795341602000000000","attributes":[)"
     R"({"key":"gen_ai.conversation.id","value":{"stringValue":"talk-1"}},{"key":"gen_ai.operation.name","value":{"stringValue":"execute_tool"}},)"
     R"({"key":"gen_ai.tool.name","value":{"stringValue":"find"}}]}]}]}]})",
     {},
     "talk-1"},
    {"mini-SWE-agent, a list",
     RecordingFormat::swe_agent,
     "mini-swe-agent",
     R"([{"role":"system","content":"s"},{"role":"user","content":"mend"},
{"role":"assistant","content":"```bash\nls\n```"},{"role":"user","content":"<returncode>0</returncode>"}])",
     {"user_input: mend", "message assistant: ```bash\nls\n```", "tool_call bash step-1: ls",
      "tool_result bash step-1: <returncode>0</returncode>"}},
    {"OpenHands, a row that names its issue and its error",
     RecordingFormat::openhands,
     "openhands",
     R"({"issue":{"owner":"o","repo":"r","number":3},"history":[{"action":"message","source":"user","args":{"content":"mend"}},
{"action":"finish","args":{"task_completed":"partial"}}],"error":null}
)",
     {"user_input: mend", "idle error: the agent states that its task is partly completed",
      "idle error: the agent states that its task is partly completed", "end incomplete partial"},
     "o__r-3"},
    {"opencode",
     RecordingFormat::opencode,
     "opencode",
     R"({"info":{"id":"ses_1","directory":"/p"},"messages":[
{"info":{"role":"user","time":{"created":1795341600000}},"parts":[{"type":"text","text":"mend"}]},
{"info":{"role":"assistant","time":{"created":1795341601000,"completed":1795341609000},"finish":"stop","tokens":{"input":5,"output":2}},
 "parts":[{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{"command":"ls"},"output":"no",
 "metadata":{"exit":2},"time":{"start":1795341602000,"end":1795341603000}}},{"type":"text","text":"done"}]}]})",
     {"user_input: mend @0", R"(tool_call bash c: {"command":"ls"} @2)", "error bash c: no @3",
      "message assistant: done @3", "budget steps=1 tokens=7 @9", "idle @9"},
     "ses_1"},
    {"opencode, the output of run",
     RecordingFormat::opencode,
     "opencode",
     R"({"type":"tool_use","timestamp":1795341602000,"sessionID":"ses_1","part":{"type":"tool","tool":"read","callID":"c","state":{"status":"error","input":{},"error":"no"}}}
{"type":"step_finish","timestamp":1795341603000,"sessionID":"ses_1","part":{"type":"step-finish","reason":"stop","tokens":{"input":1,"output":1}}}
)",
     {"tool_call read c: {} @2", "error read c: no @2", "budget steps=1 tokens=2 @3", "idle @3"},
     "ses_1"},
    {"Gemini CLI, lines",
     RecordingFormat::gemini_cli,
     "gemini-cli",
     R"({"sessionId":"g","projectHash":"p","startTime":"2026-11-22T10:00:00Z"}
{"id":"a","timestamp":"2026-11-22T10:00:00Z","type":"user","content":"mend"}
{"id":"b","timestamp":"2026-11-22T10:00:01Z","type":"gemini","content":""}
{"id":"b","timestamp":"2026-11-22T10:00:01Z","type":"gemini","content":"","toolCalls":[{"id":"c","name":"ls","args":{},"status":"error","timestamp":"2026-11-22T10:00:02Z","result":[{"functionResponse":{"response":{"error":"no"}}}]}]}
{"$set":{"summary":"x"}}
{"id":"d","timestamp":"2026-11-22T10:00:03Z","type":"gemini","content":"done","tokens":{"total":9}}
{"id":"e","timestamp":"2026-11-22T10:00:04Z","type":"user","content":"undone"}
{"$rewindTo":"e"}
)",
     {"user_input: mend @0", "tool_call ls c: {} @1", "error ls c: no @2",
      "message assistant: done @3", "budget steps=1 tokens=9 @3", "idle @3"},
     "g"},
    {"Gemini CLI, a stream",
     RecordingFormat::gemini_cli,
     "gemini-cli",
     R"({"type":"init","timestamp":"2026-11-22T10:00:00Z","session_id":"g","model":"m"}
{"type":"message","timestamp":"2026-11-22T10:00:00Z","role":"user","content":"mend"}
{"type":"tool_use","timestamp":"2026-11-22T10:00:01Z","tool_name":"ls","tool_id":"c","parameters":{}}
{"type":"tool_result","timestamp":"2026-11-22T10:00:02Z","tool_id":"c","status":"success","output":"a"}
{"type":"message","timestamp":"2026-11-22T10:00:03Z","role":"assistant","content":"do","delta":true}
{"type":"message","timestamp":"2026-11-22T10:00:03Z","role":"assistant","content":"ne","delta":true}
{"type":"result","timestamp":"2026-11-22T10:00:04Z","status":"success"}
)",
     {"user_input: mend @0", "tool_call ls c: {} @1", "tool_result ls c: a @2",
      "message assistant: done @3", "end completed task_complete @4"},
     "g"},
    {"messages of OpenAI",
     RecordingFormat::chat,
     "",
     R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"mend","timestamp":1795341600},
{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"ls","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c","content":"a"},{"role":"assistant","content":"done"}]})",
     {"user_input: mend @0", "tool_call ls c: {} @0", "tool_result ls c: a @0",
      "message assistant: done @0", "idle @0"}},
    {"messages of Anthropic, one per line",
     RecordingFormat::chat,
     "",
     R"({"role":"user","content":"mend"}
{"role":"assistant","content":[{"type":"text","text":"so"},{"type":"tool_use","id":"c","name":"ls","input":{}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":"no"}]}
)",
     {"user_input: mend", "message assistant: so", "tool_call ls c: {}", "error ls c: no"}},
    {"ShareGPT",
     RecordingFormat::chat,
     "",
     R"([{"conversations":[{"from":"human","value":"mend"},{"from":"gpt","value":"<tool_call>{\"name\":\"ls\",\"arguments\":{}}</tool_call>"},
{"from":"tool","value":"a"},{"from":"gpt","value":"done"}]}])",
     {"user_input: mend",
      R"(message assistant: <tool_call>{"name":"ls","arguments":{}}</tool_call>)",
      "tool_call ls call-1: {}", "tool_result ls call-1: a", "message assistant: done", "idle"}},
    {"Cline",
     RecordingFormat::cline,
     "cline",
     R"([{"ts":1795341600000,"type":"say","say":"task","text":"mend"},
{"ts":1795341601000,"type":"ask","ask":"command","text":"make"},{"ts":1795341602000,"type":"say","say":"command_output","text":"made"},
{"ts":1795341603000,"type":"say","say":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a\"}"},
{"ts":1795341604000,"type":"say","say":"error","text":"no such file"},{"ts":1795341605000,"type":"say","say":"completion_result","text":"done"}])",
     {"user_input: mend @0", "tool_call command call-1: make @1",
      "tool_result command call-1: made @3",
      R"(tool_call readFile call-2: {"path":"a","tool":"readFile"} @3)",
      "error readFile call-2: no such file @4", "message assistant: done @5", "idle @5"}},
    {"pi",
     RecordingFormat::pi,
     "pi",
     R"({"type":"session","version":3,"id":"p1","timestamp":"2026-11-22T10:00:00Z","cwd":"/p"}
{"type":"message","timestamp":"2026-11-22T10:00:00Z","message":{"role":"user","content":"mend"}}
{"type":"message","timestamp":"2026-11-22T10:00:01Z","message":{"role":"assistant","stopReason":"toolUse","content":[{"type":"toolCall","id":"c","name":"ls","arguments":{}}]}}
{"type":"message","timestamp":"2026-11-22T10:00:02Z","message":{"role":"toolResult","toolCallId":"c","toolName":"ls","isError":true,"content":[{"type":"text","text":"no"}]}}
{"type":"message","timestamp":"2026-11-22T10:00:03Z","message":{"role":"assistant","stopReason":"aborted","content":[]}}
)",
     {"user_input: mend @0", "tool_call ls c: {} @1", "error ls c: no @2", "idle interrupted @3"},
     "p1"},
    {"events of a managed agent",
     RecordingFormat::managed_agents,
     "managed-agent",
     R"({"data":[{"id":"e1","type":"user.message","processed_at":"2026-11-22T10:00:00Z","content":[{"type":"text","text":"mend"}]},
{"id":"e2","type":"agent.tool_use","processed_at":"2026-11-22T10:00:01Z","name":"bash","input":{}},
{"id":"e3","type":"agent.tool_result","processed_at":"2026-11-22T10:00:02Z","tool_use_id":"e2","is_error":true,"content":"no"},
{"id":"e4","type":"session.status_idle","processed_at":"2026-11-22T10:00:03Z","stop_reason":{"type":"end_turn"}}]})",
     {"user_input: mend @0", "tool_call bash e2: {} @1", "error bash e2: no @2", "idle @3"}},
    {"ATIF",
     RecordingFormat::atif,
     "a",
     R"({"schema_version":"ATIF-v1.4","session_id":"t","agent":{"name":"a"},"steps":[
{"source":"user","timestamp":"2026-11-22T10:00:00Z","message":"mend"},
{"source":"agent","timestamp":"2026-11-22T10:00:01Z","message":"","tool_calls":[{"tool_call_id":"c","function_name":"ls","arguments":{}}],
 "observation":{"results":[{"source_call_id":"c","content":"a"}]},"metrics":{"prompt_tokens":3,"completion_tokens":1}},
{"source":"agent","timestamp":"2026-11-22T10:00:02Z","message":"done"}]})",
     {"user_input: mend @0", "tool_call ls c: {} @1", "budget steps=1 tokens=4 @1",
      "tool_result ls c: a @1", "message assistant: done @2", "idle @2"},
     "t"},
    {"the log of Codex' terminal program",
     RecordingFormat::codex_log,
     "codex",
     R"({"ts":"2026-11-22T10:00:00Z","dir":"meta","kind":"session_start","cwd":"/p"}
{"ts":"2026-11-22T10:00:00Z","dir":"to_tui","kind":"codex_event","payload":{"id":"0","msg":{"type":"session_configured","session_id":"x1","model":"m"}}}
{"ts":"2026-11-22T10:00:01Z","dir":"from_tui","kind":"op","payload":{"type":"user_input","items":[{"type":"text","text":"mend"}]}}
{"ts":"2026-11-22T10:00:02Z","dir":"to_tui","kind":"codex_event","payload":{"msg":{"type":"exec_command_begin","call_id":"c","command":["ls"]}}}
{"ts":"2026-11-22T10:00:03Z","dir":"to_tui","kind":"codex_event","payload":{"msg":{"type":"exec_command_end","call_id":"c","stdout":"a","exit_code":1}}}
{"ts":"2026-11-22T10:00:04Z","dir":"to_tui","kind":"codex_event","payload":{"msg":{"type":"task_complete"}}}
)",
     {"user_input: mend @1", "tool_call shell c: ls @2", "error shell c: a @3", "idle @4"},
     "x1"},
    {"aider",
     RecordingFormat::aider,
     "aider",
     "\n# aider chat started at 2026-11-22 10:00:00\n\n> Aider v0.86.1\n\n#### mend\n\nI mend "
     "it.\n\n"
     "> Tokens: 1.5k sent, 100 received. Cost: $0.01 message\n> Applied edit to a.py\n",
     {"user_input: mend @0", "message assistant: I mend it.", "budget steps=1 tokens=1600",
      "tool_call edit call-1: a.py", "tool_result edit call-1: Applied edit to a.py", "idle"}},
    {"Claude Code on the web",
     RecordingFormat::claude_code,
     "claude-code",
     R"({"loglines":[{"type":"user","timestamp":"2026-11-22T10:00:00Z","message":{"role":"user","content":"mend"}}]})",
     {"user_input: mend @0"}},
    {"the output of claude -p",
     RecordingFormat::claude_code,
     "claude-code",
     R"({"type":"system","subtype":"init","session_id":"s","tools":["Bash"],"uuid":"a","model":"m"}
{"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{"id":"m1","content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}
{"type":"user","session_id":"s","parent_tool_use_id":"c","message":{"content":[{"type":"text","text":"sub"}]}}
{"type":"result","subtype":"success","session_id":"s","num_turns":1}
)",
     {},
     "s"},
    {"Codex before payloads",
     RecordingFormat::codex,
     "codex",
     R"({"id":"s","timestamp":"2026-11-22T10:00:00Z","instructions":null}
{"type":"message","role":"user","content":[{"type":"input_text","text":"mend"}]}
)",
     {},
     "s"},
    {"events of this program",
     RecordingFormat::watchdog,
     "",
     R"({"kind":"tool_call","name":"find","call_id":"c1","ts_ms":1795341601000}
{"kind":"of a newer version"}

{"kind":"message","name":"assistant","text":"x","trajectory":[],"run_type":"llm","inputs":{}}
)",
     {"tool_call find c1 @1", "message assistant: x"}},
};

TEST_F(Recordings, of_each_format_become_reports) {
  for (const auto& sample : samples) {
    const auto found = read(sample.text);
    EXPECT_FALSE(found.error) << sample.what << ": " << mistake(found);
    EXPECT_EQ(name_of(found.format), name_of(sample.format)) << sample.what;
    EXPECT_EQ(found.agent, sample.agent) << sample.what;
    // Other tests say what becomes of a transcript and of telemetry.
    ASSERT_FALSE(found.steps.empty()) << sample.what;
    const auto session =
        *sample.session == '\0' ? open_recording(file_)->session : std::string(sample.session);
    EXPECT_TRUE(found.steps[0].starts_with(session + " ")) << found.steps[0];
    if (sample.steps.empty()) continue;
    std::vector<std::string> expected;
    for (const auto& step : sample.steps) expected.push_back(session + " " + step);
    EXPECT_EQ(found.steps, expected) << sample.what;
    // Its name gives the same as its content.
    EXPECT_EQ(read(sample.text, sample.format).steps, expected) << sample.what;
  }
}

TEST_F(Recordings, of_this_program_are_recognized_by_their_kinds) {
  EXPECT_EQ(read("").format, RecordingFormat::watchdog);
  EXPECT_FALSE(read("\n \n").error);
  // The reader leaves out kinds of a newer version, also in a file that has only such kinds.
  const auto newer = read(
      "{\"seq\":1,\"at_ms\":1,\"kind\":\"dream\"}\n{\"seq\":2,\"at_ms\":2,\"kind\":\"sleep\"}\n");
  EXPECT_FALSE(newer.error) << mistake(newer);
  EXPECT_TRUE(newer.steps.empty());
  EXPECT_EQ(newer.format, RecordingFormat::watchdog);
  // OpenHands may have kinds that are not known either.
  EXPECT_EQ(read("{\"kind\":\"NewEvent\"}\n{\"kind\":\"PauseEvent\"}\n").format,
            RecordingFormat::openhands);
}

TEST_F(Recordings, of_other_programs_are_refused) {
  const char* texts[] = {
      R"({"role":"agent","kind":"tool_use","tool":"bash","content":"x","time":"2026-02-11T07:00:00Z"})",
      R"({"role":"user","kind":"message","content":"x"})",
      R"({"role":"user","type":"event","content":"x"})",
      R"({"role":"model","parts":[{"text":"x"}]})",
      R"({"type":"system","subtype":"init","session_id":"s","apiKeySource":"login","model":"m"})",
      R"({"type":"tool_call","subtype":"started","session_id":"s","call_id":"c","tool_call":{}})",
      R"({"messages":[]})",
      R"({"messages":[{"role":"user","content":"x"},{"role":"critic","content":"y"}]})",
      R"({"id":"x","timestamp":"2026-11-22T10:00:00Z","level":"info","message":"started"})",
      R"([{"ts":1,"level":"info"}])",
      "\"a text\"",
      "# A title\n\nA text.\n",
  };
  for (const auto* text : texts) EXPECT_TRUE(read(text).error) << text;
}

TEST_F(Recordings, of_this_program_may_come_through_a_pipe) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(file_) << "{\"kind\":\"heartbeat\"}\n"; });
  const auto found = read_file();
  writer.join();
  EXPECT_FALSE(found.error) << mistake(found);
  EXPECT_EQ(found.steps.size(), 1U);
}

TEST_F(Recordings, that_are_broken_say_where) {
  using enum RecordingFormat;
  struct Row {
    const char* text;
    std::optional<RecordingFormat> format;
    const char* wrong;
    std::size_t steps;
  };
  const Row rows[] = {
      {"{\"x\":1}\n",
       {},
       "FILE: the format was not recognized. Its first members are x. Name the format with "
       "--format: watchdog",
       0},
      {"[1,\n2,\n}\n", {}, "FILE:3: it is not JSON", 0},
      {"{\"kind\":\"heartbeat\"}\n\n{\"kind\":1}\n", {}, "FILE:3: ", 1},
      {"{\"kind\":\"heartbeat\"}\n{bad\n", {}, "FILE:2: ", 1},
      {"{\"kind\":\"PauseEvent\"}\n{bad\n", {}, "FILE:2: it is not JSON", 1},
      {"{\"run_type\":\"tool\",\"inputs\":{}}\n7\n", {}, "FILE:2: a run must be an object", 1},
      {"{\"id\":\"x\",\"traceId\":\"t\",\"type\":\"TOOL\",\"startTime\":\"2026-11-22T10:00:00Z\"}"
       "\n7\n",
       {},
       "FILE:2: an observation must be an object",
       1},
      {"{\"trajectory\":1}", swe_agent, "trajectory, or messages, must be an array", 0},
      {"{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"content\":\"a\"}}\n7\n",
       {},
       "FILE:2: the line is not a JSON object",
       1},
  };
  for (const auto& row : rows) {
    const auto found = read(row.text, row.format);
    ASSERT_TRUE(found.error) << row.text;
    EXPECT_NE(mistake(found).find(row.wrong), std::string::npos) << mistake(found);
    EXPECT_EQ(found.steps.size(), row.steps) << row.text;
  }
  std::filesystem::remove(file_);
  EXPECT_EQ(read_file().error->code, ErrorCode::not_found);
}

TEST_F(Recordings, with_a_very_long_text_are_read) {
  for (const auto& sample : samples) {
    const auto value = nlohmann::json::parse(sample.text, nullptr, false);
    if (value.is_discarded()) continue;  // lines
    test::for_each_long_text(value, [&](const nlohmann::json& variant) {
      std::ofstream(file_, std::ios::binary) << variant.dump();
      auto recording = open_recording(file_, sample.format);
      if (!recording) return;
      while (true) {
        auto step = recording->reader->next();
        if (!step || !*step) return;
        EXPECT_LE((*step)->report.name.size(), 256U) << sample.what;
        EXPECT_LE((*step)->report.call_id.size(), 256U) << sample.what;
        EXPECT_TRUE(check((*step)->session->spec).ok()) << sample.what;
      }
    });
  }
}

TEST_F(Recordings, with_deep_values_are_refused_or_read_as_text) {
  constexpr std::size_t levels = 100'000;
  const auto deep = std::string(levels, '[') + std::string(levels, ']');
  const auto refused = read("{\"run_type\":\"tool\",\"inputs\":" + deep + "}\n");
  ASSERT_TRUE(refused.error);
  EXPECT_NE(mistake(refused).find("levels"), std::string::npos) << mistake(refused);
  const auto found = read(
      R"({"id":"x","traceId":"t","type":"TOOL","name":"n","startTime":"2026-11-22T10:00:00Z","input":")" +
      deep + "\"}\n");
  EXPECT_FALSE(found.error) << mistake(found);
  ASSERT_EQ(found.steps.size(), 1U);
  EXPECT_TRUE(found.steps[0] == "t tool_call n x: " + deep + " @0");
}

}  // namespace
}  // namespace watchdog::monitor
