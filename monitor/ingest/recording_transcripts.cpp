// Transcripts that are not in lines: a session of Claude Code on the web is an object with its
// lines as `loglines`, and `jq -s` makes a list of them. Each element is read like a line. A file
// whose lines name no session is one session with the file's name.
#include "ingest/recording_steps.h"
#include "ingest/transcript.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The lines in a value; null: it is one itself.
const json* lines_in(const json& value) {
  const auto& lines = member(value, "loglines");
  return value.is_array() ? &value : lines.is_array() ? &lines : nullptr;
}

const json& first_line(const json& value) {
  const auto* lines = lines_in(value);
  if (lines == nullptr) return value;
  return lines->empty() ? member(value, "") : lines->front();
}

class TranscriptValues final : public ValueReader {
 public:
  explicit TranscriptValues(TranscriptAgent agent) : agent_(agent), transcript_(agent) {}

  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    const auto* lines = lines_in(value);
    if (lines == nullptr) return read_line(value, steps);
    for (const auto& line : *lines)
      if (auto done = read_line(line, steps); !done) return done;
    return {};
  }
  void finish(StepList& steps) override { add(transcript_.pause(), steps); }

 private:
  Result<void> read_line(const json& value, StepList& steps) {
    if (!value.is_object())
      return Error{ErrorCode::malformed, "a line of a transcript must be an object"};
    auto line = value;
    const bool is_named = line.contains("sessionId") || line.contains("session_id");
    if (agent_ == TranscriptAgent::claude_code && !is_named) line["sessionId"] = steps.name();
    auto batches = transcript_.read(line.dump(-1, ' ', false, json::error_handler_t::replace),
                                    system_clock().wall());
    if (!batches) return Error{ErrorCode::malformed, "the line of a transcript is too deep"};
    add(std::move(*batches), steps);
    return {};
  }

  void add(std::vector<Batch> batches, StepList& steps) {
    for (auto& batch : batches) {
      if (batch.spec.title.empty()) batch.spec.title = transcript_.title_of(batch.session);
      const auto session = steps.session(batch.session, batch.spec);
      for (auto& report : batch.reports) {
        report.at.reset();  // without a time of its line it would be the present
        steps.say(session, std::move(report), {});
      }
    }
  }

  TranscriptAgent agent_;
  Transcript transcript_;
};

}  // namespace

bool is_claude_code(const json& value) {
  const auto& line = first_line(value);
  const auto type = text_in(line, "type");
  const bool is_line = type == "user" || type == "assistant" || type == "system";
  if (is_line && !text_in(line, "sessionId").empty()) return true;
  // On the web the list has a name that no other program uses.
  if (is_line && member(value, "loglines").is_array()) return member(line, "message").is_object();
  // The output as a stream. Other programs have lines of that form without these members.
  if (text_in(line, "session_id").empty()) return false;
  const bool is_end = type == "result" && member(line, "num_turns").is_number();
  return is_end ||
         (is_line && (line.contains("uuid") || line.contains("parent_tool_use_id") ||
                      line.contains("claude_code_version") || member(line, "tools").is_array()));
}

bool is_codex(const json& value) {
  const auto& line = first_line(value);
  const auto type = text_in(line, "type");
  const bool is_line = type == "session_meta" || type == "response_item" || type == "event_msg" ||
                       type == "turn_context" || type == "compacted";
  if (is_line && member(line, "payload").is_object()) return true;
  // Until September 2025 the first line had the facts of the session, and the others no payload.
  return type.empty() && !text_in(line, "id").empty() && !text_in(line, "timestamp").empty() &&
         line.contains("instructions") && (line.contains("git") || line.size() <= 4);
}

std::unique_ptr<ValueReader> claude_code_reader() {
  return std::make_unique<TranscriptValues>(TranscriptAgent::claude_code);
}

std::unique_ptr<ValueReader> codex_reader() {
  return std::make_unique<TranscriptValues>(TranscriptAgent::codex);
}

}  // namespace watchdog::monitor
