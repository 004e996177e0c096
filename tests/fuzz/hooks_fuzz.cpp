// Whatever a coding agent's hook sends, it becomes valid reports of a valid session, or an error.

#include <string_view>

#include "codec/json.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
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
      R"({"event":"chat.message","session":"s","text":"t","timestamp":"2026-01-01T00:00:00Z"})"};
}

void try_input(std::string_view text) {
  for (const auto agent :
       {HookAgent::claude_code, HookAgent::codex, HookAgent::gemini_cli, HookAgent::opencode}) {
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
      for (const auto& report : event->reports) {
        Event told;
        told.report = report;
        FUZZ_REQUIRE(is_json(to_json(told)));
      }
    }
  }
}
