// Whatever is in a transcript, each line becomes valid reports of valid sessions, or none. The
// state may be saved and read again after any line.

#include <string_view>

#include "codec/json.h"
#include "facts/ids.h"
#include "fuzz/fuzz.h"
#include "ingest/transcript.h"

using namespace watchdog;
using monitor::Transcript;
using monitor::TranscriptAgent;

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"type":"user","sessionId":"s","timestamp":"2026-11-22T10:00:00.123Z","message":{"content":"do it"}})"
      "\n"
      R"({"type":"assistant","sessionId":"s","isSidechain":true,"agentId":"a","message":{"id":"m","stop_reason":"end_turn",)"
      R"("usage":{"input_tokens":5,"output_tokens":7},"content":[{"type":"text","text":"done"},)"
      R"({"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls"}}]}})"
      "\n"
      R"({"type":"user","sessionId":"s","toolUseResult":{"agentId":"a","status":"completed"},)"
      R"("message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no"}]}})"
      "\n"
      R"({"type":"system","subtype":"api_error","sessionId":"s","error":{"status":529},"retryInMs":5})",
      R"({"type":"session_meta","timestamp":"2026-11-22T10:00:00Z","payload":{"id":"s","cwd":"/p",)"
      R"("source":{"subagent":{"thread_spawn":{"parent_thread_id":"p"}}}}})"
      "\n"
      R"({"type":"event_msg","timestamp":"2026-11-22T10:00:01Z","payload":{"type":"task_started","turn_id":"t"}})"
      "\n"
      R"({"type":"response_item","timestamp":"2026-11-22T10:00:02Z","payload":{"type":"function_call","name":"sh","arguments":"{}","call_id":"c"}})"
      "\n"
      R"({"type":"event_msg","timestamp":"2026-11-22T10:00:03Z","payload":{"type":"task_complete","error":{"message":"x","codex_error_info":{"a":{"http_status_code":401}}}}})",
      R"({"sessionId":"s","projectHash":"h","kind":"subagent","directories":["/p"]})"
      "\n"
      R"({"id":"m1","type":"user","timestamp":"2026-11-22T10:00:00Z","content":[{"text":"do it"}]})"
      "\n"
      R"({"$set":{"messages":[{"id":"m2","type":"gemini","timestamp":"2026-11-22T10:00:01Z","content":"so","tokens":{"total":5},)"
      R"("toolCalls":[{"id":"c","name":"sh","args":{"a":1},"status":"error","timestamp":"2026-11-22T10:00:02Z","resultDisplay":"no"}]}]}})",
      R"({"id":"e1","type":"message.updated.1","data":{"sessionID":"s","info":{"id":"m1","role":"user","time":{"created":1795341600000}}}})"
      "\n"
      R"({"id":"e2","type":"message.part.updated.1","data":{"sessionID":"s","part":{"id":"p1","messageID":"m1","type":"text","text":"do it"}}})"
      "\n"
      R"({"id":"e3","type":"message.part.updated.1","data":{"sessionID":"s","time":1795341601000,"part":{"id":"p2","messageID":"m2","type":"tool",)"
      R"("tool":"bash","callID":"c","state":{"status":"error","input":{},"error":"no","time":{"start":1}}}}})"
      "\n"
      R"({"id":"e4","type":"message.updated.1","data":{"sessionID":"s","info":{"id":"m2","role":"assistant","finish":"stop","cost":0.1,)"
      R"("tokens":{"input":5,"output":1},"time":{"created":1795341600000,"completed":1795341602000}}}})"};
}

void try_input(std::string_view text) {
  constexpr WallTime now{Millis{1'795'435'200'000}};
  for (const auto agent : {TranscriptAgent::claude_code, TranscriptAgent::codex,
                           TranscriptAgent::gemini_cli, TranscriptAgent::opencode}) {
    Transcript transcript(agent, {}, "parent");
    const auto check_all = [&](const std::vector<Batch>& batches) {
      for (const auto& batch : batches) {
        FUZZ_REQUIRE(is_session_id(batch.session));
        FUZZ_REQUIRE(batch.session != batch.spec.parent);
        FUZZ_REQUIRE(check(batch.spec).ok());
        for (const auto& report : batch.reports) {
          FUZZ_REQUIRE(report.at && *report.at <= now);
          FUZZ_REQUIRE(!report.event_id.empty() && report.event_id.size() <= 256);
          FUZZ_REQUIRE(report.name.size() <= 256 && report.call_id.size() <= 256);
          Event reported;
          reported.report = report;
          FUZZ_REQUIRE(is_json(to_json(reported)));
        }
      }
    };
    for (auto rest = text; !rest.empty();) {
      const auto line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (const auto batches = transcript.read(line, now)) check_all(*batches);
      const auto saved = transcript.save();
      FUZZ_REQUIRE(is_json(saved));
      transcript = Transcript(agent, saved);
      FUZZ_REQUIRE(transcript.save() == saved);
    }
    check_all(transcript.pause());
    check_all(transcript.leave());
    (void)Transcript(agent, text).save();
  }
}
