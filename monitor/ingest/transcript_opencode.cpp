// opencode keeps a log of events in its database: each change of a session, of a message or of a
// part of one, with the whole of it. A tool's part changes from `pending` over `running` to
// `completed` or `error`. A part does not say whose message it belongs to, so the newest message of
// a person is remembered. Ids of messages grow with time. Calls have the event ids of the plugin's
// hooks.
// Source: sst/opencode packages/opencode/src/session/message-v2.ts, and what version 1.18.33
// writes.
#include <algorithm>

#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "ingest/opencode_part.h"
#include "ingest/own_limit.h"
#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr const char* code_call = "hook:tool.execute.before:";
constexpr const char* code_result = "hook:tool.execute.after:";
constexpr const char* code_failure = "hook:message.part.updated:";

/// The type without the version of its form: `message.updated` of `message.updated.1`.
std::string_view plain_type(std::string_view type) {
  const auto dot = type.rfind('.');
  if (dot == type.npos) return type;
  const auto version = type.substr(dot + 1);
  const bool is_number =
      !version.empty() && version.find_first_not_of("0123456789") == version.npos;
  return is_number ? type.substr(0, dot) : type;
}

std::string short_text(std::string text) {
  return text.size() > label_bytes_max ? std::string() : std::move(text);
}

void note_code_model(TranscriptSession& conversation, std::string model) {
  if (model = short_text(std::move(model)); !model.empty()) conversation.model = std::move(model);
}

void read_code_session(TranscriptSession& conversation, const json& info) {
  note_code_model(conversation, text_in(member(info, "model"), "id"));
  if (conversation.cwd.empty()) conversation.cwd = short_text(text_in(info, "directory"));
  auto parent = as_session_id(text_in(info, "parentID"));
  if (conversation.parent.empty() && parent != conversation.session)
    conversation.parent = std::move(parent);
}

void read_code_error(TranscriptCollector& collector, TranscriptSession& conversation,
                     const json& error) {
  const auto name = text_in(error, "name");
  if (name == "MessageAbortedError") return collector.rest(conversation, idle_reports::interrupted);
  const auto& data = member(error, "data");
  collector.fail(conversation, name, text_in(data, "message"), number_in(data, "statusCode"));
}

void read_code_message(TranscriptCollector& collector, TranscriptSession& conversation,
                       const json& info) {
  const auto id = short_text(text_in(info, "id"));
  if (id.empty()) return;
  if (text_in(info, "role") == "user") {
    conversation.turn = std::max(conversation.turn, id);
    note_code_model(conversation, text_in(member(info, "model"), "modelID"));
    return;
  }
  note_code_model(conversation, text_in(info, "modelID"));
  if (conversation.cwd.empty()) conversation.cwd = short_text(text_in(member(info, "path"), "cwd"));
  const auto& error = member(info, "error");
  const bool is_over = number_in(member(info, "time"), "completed") > 0 || error.is_object();
  if (!is_over) return;
  const auto tokens = opencode_tokens(info);
  if (tokens > 0 && id >= conversation.answer)
    collector.use(conversation, id, tokens, opencode_cost(info));
  if (id < conversation.turn) return;  // an answer to an earlier prompt
  if (error.is_object()) {
    if (is_first(conversation, combined(digest_of(id), 1)))
      read_code_error(collector, conversation, error);
  } else if (flag_in(info, "summary")) {
    conversation.may_rest = true;  // it may go on by itself
  } else if (ends_opencode_turn(text_in(info, "finish"))) {
    collector.rest(conversation);
  }
}

void read_code_call(TranscriptCollector& collector, TranscriptSession& conversation,
                    const json& part) {
  const auto& state = member(part, "state");
  const auto id = text_in(part, "callID");
  const bool is_over = is_opencode_call_over(state);
  if (!is_over && text_in(state, "status") != "running") return;
  // It may change after its end, for example when its output is dropped.
  const auto key = digest_of(text_in(part, "id"));
  if (is_known(conversation, combined(key, 2)) || member(state, "time").contains("compacted"))
    return;
  collector.answered(conversation);
  collector.name_calls(code_call, code_result);
  const auto& input = member(state, "input");
  if (is_first(conversation, combined(key, 1)) && !is_open(conversation, id))
    collector.call(conversation, id, text_in(part, "tool"), content_text(input),
                   own_limit(text_in(part, "tool"), &input));
  if (!is_over) return;
  (void)is_first(conversation, combined(key, 2));
  collector.result(conversation, id, is_opencode_failure(state), opencode_result(state),
                   text_in(state, "status") == "error" ? code_failure : code_result);
}

void read_code_part(TranscriptCollector& collector, TranscriptSession& conversation,
                    const json& part) {
  const auto type = text_in(part, "type");
  const auto message = text_in(part, "messageID");
  if (type == "compaction") {
    if (is_first(conversation, digest_of(text_in(part, "id"))))
      collector.compact(conversation, false);
  } else if (message == conversation.turn && !message.empty()) {
    // Texts after the first one are of files that came with it.
    auto text = text_in(part, "text");
    if (!is_opencode_prompt(part) || text.empty() || conversation.prompt == message) return;
    conversation.prompt = message;
    collector.prompt(conversation, content_text(text));
  } else if (type == "tool") {
    read_code_call(collector, conversation, part);
  } else if (type == "text") {
    auto text = content_text(text_in(part, "text"));
    if (text.empty() || number_in(member(part, "time"), "end") <= 0 || flag_in(part, "synthetic") ||
        !is_first(conversation, digest_of(text_in(part, "id"))))
      return;
    collector.answered(conversation);
    collector.say(conversation, ReportKind::message, "assistant", std::move(text));
  }
}

}  // namespace

std::optional<WallTime> opencode_time(const json& line) {
  const auto& data = member(line, "data");
  if (const auto at = moment_in(data, "time")) return at;
  const auto& times = member(member(data, "info"), "time");
  for (const auto* name : {"completed", "updated", "created"})
    if (const auto at = moment_in(times, name)) return at;
  return std::nullopt;
}

void read_opencode(TranscriptCollector& collector, const json& line) {
  const auto type = text_in(line, "type");
  const auto& data = member(line, "data");
  const auto session = as_session_id(text_in(data, "sessionID"));
  if (session.empty()) return;
  const auto plain = plain_type(type);
  const auto& info = member(data, "info");
  if (plain == "session.created" || plain == "session.updated") {
    read_code_session(collector.conversation(session), info);
  } else if (plain == "message.updated") {
    read_code_message(collector, collector.conversation(session), info);
  } else if (plain == "message.part.updated") {
    read_code_part(collector, collector.conversation(session), member(data, "part"));
  }
}

}  // namespace watchdog::monitor
