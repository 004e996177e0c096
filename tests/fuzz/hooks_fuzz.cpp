// Whatever a coding agent's hook sends, it becomes valid reports of a valid session, or an error.

#include <iterator>
#include <string_view>

#include "codec/json.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
#include "ingest/hook_answer.h"
#include "ingest/hooks.h"

using namespace watchdog;
using monitor::hook_event;
using monitor::HookAgent;

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"t",)"
      R"("tool_input":{"command":"ls"}})",
      R"({"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_use_id":"t",)"
      R"("tool_response":{"stdout":"x"},"agent_id":"a","agent_type":"Explore"})",
      R"({"session_id":"s","hook_event_name":"Notification","message":"is waiting for your input"})",
      R"({"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"p"})",
      R"({"session_id":"s","hook_event_name":"Stop","last_assistant_message":"done"})",
      R"({"type":"agent-turn-complete","thread-id":"s","turn-id":"1","input-messages":["a"]})",
      R"({"session_id":"s","hook_event_name":"BeforeTool","tool_name":"f","args":{"x":1}})",
      R"({"type":"permission.asked","properties":{"sessionID":"s","id":"p1","permission":"bash",)"
      R"("tool":{"callID":"c"},"metadata":{"command":"ls"}}})",
      R"({"type":"permission.replied","properties":{"sessionID":"s","requestID":"p1","reply":"once"}})",
      R"({"type":"session.error","properties":{"sessionID":"s","error":{"name":"APIError","data":)"
      R"({"message":"limit reached|1795806400","statusCode":429}}}})",
      R"({"type":"session.status","properties":{"sessionID":"s","status":{"type":"retry","next":1}}})",
      R"({"hook_event_name":"stop","conversation_id":"c","status":"error","error_message":"try again in 6m",)"
      R"("workspace_roots":["/w"]})",
      R"({"hook_event_name":"PostToolUse","sessionId":"s","toolName":"bash","tool_response":)"
      R"({"result_type":"failure","text_result_for_llm":"no"},"timestamp":1795435200000})",
      R"({"hook_event_name":"BeforeModel","session_id":"s","llm_request":{"messages":[{"content":"<state_snapshot>"}]}})",
      R"({"type":"permission","session_id":"s","id":"1","message":"may I?"})",
      R"({"type":"answered","session_id":"s","id":"1"})"};
}

namespace {

constexpr HookAgent all_agents[] = {
    HookAgent::claude_code, HookAgent::codex,       HookAgent::gemini_cli, HookAgent::opencode,
    HookAgent::cursor,      HookAgent::copilot_cli, HookAgent::generic};
static_assert(std::size(all_agents) == std::size(Names<HookAgent>::all));

/// An agent reads the answer as JSON, whatever the event's name and the reason are.
void try_answer(HookAgent agent, const monitor::HookEvent& event) {
  FUZZ_REQUIRE(monitor::hook_answer(agent, event.name, {}).body == "{}");
  const CancelRequest cancel{.by = event.session, .reason = event.name};
  const auto answer = monitor::hook_answer(agent, event.name, cancel);
  FUZZ_REQUIRE(is_json(answer.body));
  (void)monitor::reports_after(answer, event, cancel);
}

}  // namespace

void try_input(std::string_view text) {
  for (const auto agent : all_agents) {
    for (const std::string session : {"", "given"}) {
      const auto event = hook_event(agent, text, session);
      if (!event) {
        FUZZ_REQUIRE(!event.error().message.empty());
        continue;
      }
      const bool is_of_program = event->session.empty() && event->reports.empty();
      FUZZ_REQUIRE(is_of_program || is_session_id(event->session));
      FUZZ_REQUIRE(session.empty() || event->session.starts_with(session));
      FUZZ_REQUIRE(check(event->spec).ok());
      try_answer(agent, *event);
      for (const auto& report : event->reports) {
        Event reported;
        reported.report = report;
        FUZZ_REQUIRE(is_json(to_json(reported)));
      }
    }
  }
}
