// Codex's transcript ("rollout"). `codex_rows` gives the meaning of a line by its type and the type
// of its payload. The first `session_meta` names the session; a fork's file goes on with a copy of
// another session's lines, which are older. Several lines report the same thing in other words: a
// prompt, an answer and a call's end are each taken from one of them.
#include <algorithm>
#include <iterator>

#include "ingest/transcript_state.h"
#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The meaning of a line.
enum class CodexMeaning : std::uint8_t {
  meta,     ///< the session
  context,  ///< model and directory of a turn
  begin,    ///< a turn begins
  prompt,   ///< older versions
  item,     ///< a finished item; only prompts are taken from it
  message,  ///< of a person or the model; only the model's are taken
  call,
  shell,   ///< a call of the shell
  search,  ///< a search in the web, which the server did
  result,
  use,      ///< tokens
  compact,  ///< the context was shortened
  aborted,  ///< a person stopped the turn
  failure,  ///< the turn failed
  trouble,  ///< an error after which Codex goes on
  rest      ///< the turn is over
};

struct CodexRow {
  std::string_view type;
  std::string_view payload;
  CodexMeaning meaning;
};

constexpr CodexRow codex_rows[] = {
    {"session_meta", "", CodexMeaning::meta},
    {"turn_context", "", CodexMeaning::context},
    {"compacted", "", CodexMeaning::compact},
    {"event_msg", "task_started", CodexMeaning::begin},
    {"event_msg", "user_message", CodexMeaning::prompt},
    {"event_msg", "item_completed", CodexMeaning::item},
    {"event_msg", "token_count", CodexMeaning::use},
    {"event_msg", "context_compacted", CodexMeaning::compact},
    {"event_msg", "turn_aborted", CodexMeaning::aborted},
    {"event_msg", "error", CodexMeaning::failure},
    {"event_msg", "stream_error", CodexMeaning::trouble},
    {"event_msg", "task_complete", CodexMeaning::rest},
    {"response_item", "message", CodexMeaning::message},
    {"response_item", "function_call", CodexMeaning::call},
    {"response_item", "custom_tool_call", CodexMeaning::call},
    {"response_item", "local_shell_call", CodexMeaning::shell},
    {"response_item", "web_search_call", CodexMeaning::search},
    {"response_item", "function_call_output", CodexMeaning::result},
    {"response_item", "custom_tool_call_output", CodexMeaning::result},
};

constexpr std::string_view codex_failure = "hook:PostToolUse:";

std::string short_text(std::string text) {
  return text.size() > label_bytes_max ? std::string() : std::move(text);
}

void take_codex_meta(TranscriptScribe& scribe, TranscriptState& state, const json& payload) {
  if (!state.own.empty()) return;  // of the session that it was forked from
  state.own = session_id_from(text_in(payload, "id"));
  if (state.own.empty()) return;
  state.begins_ms = scribe.at().time_since_epoch().count();
  const auto& spawn = member(member(member(payload, "source"), "subagent"), "thread_spawn");
  auto parent = text_in(spawn, "parent_thread_id");
  if (parent.empty() && member(payload, "source").is_object())
    parent = text_in(payload, "parent_thread_id");
  state.parent = session_id_from(std::move(parent));
  auto& talk = scribe.talk(state.own, state.parent);
  talk.cwd = short_text(text_in(payload, "cwd"));
}

void take_codex_prompt(TranscriptScribe& scribe, TranscriptTalk& talk, std::string text) {
  constexpr std::size_t compared = 200;
  const std::string beginning(first_characters(text, compared));
  if (text.empty() || (talk.works && beginning == talk.prompt)) return;  // older files have both
  talk.prompt = beginning;
  scribe.prompt(talk, std::move(text),
                talk.turn.empty() ? std::string() : "hook:UserPromptSubmit:" + talk.turn);
}

void take_codex_item(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  const auto& item = member(payload, "item");
  if (text_in(item, "type") == "UserMessage")
    take_codex_prompt(scribe, talk, content_text(member(item, "content")));
}

void take_codex_message(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  if (text_in(payload, "role") != "assistant") return;
  scribe.answered(talk);
  auto text = content_text(member(payload, "content"));
  if (!text.empty()) scribe.say(talk, ReportKind::message, "assistant", std::move(text));
}

void take_codex_call(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  scribe.answered(talk);
  auto arguments = content_text(member(payload, "arguments"));
  if (arguments.empty()) arguments = content_text(member(payload, "input"));
  if (arguments.empty()) arguments = content_text(member(payload, "action"));
  scribe.call(talk, text_in(payload, "call_id"), text_in(payload, "name"), std::move(arguments));
}

/// The server searched by itself: the call is over.
void take_codex_search(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  auto id = text_in(payload, "id");
  if (id.empty()) id = text_in(payload, "call_id");
  if (id.empty()) return;
  scribe.answered(talk);
  scribe.call(talk, id, "web_search", content_text(member(payload, "action")));
  scribe.result(talk, id, text_in(payload, "status") == "failed", text_in(payload, "status"),
                codex_failure);
}

void take_codex_result(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  const auto& output = member(payload, "output");
  const auto& success = member(output, "success");
  auto text = output.is_object() && output.contains("content")
                  ? content_text(member(output, "content"))
                  : content_text(output);
  const bool failed = (success.is_boolean() && !success.get<bool>()) ||
                      text.find("aborted by user") != std::string::npos;
  scribe.result(talk, text_in(payload, "call_id"), failed, std::move(text), codex_failure);
}

void take_codex_use(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  const auto& total = member(member(payload, "info"), "total_token_usage");
  const auto tokens = number_in(total, "input_tokens") + number_in(total, "output_tokens");
  if (!total.is_object() || tokens <= talk.tokens || tokens > budget_max) return;
  ++talk.steps;
  scribe.use_total(talk, tokens);
}

/// The word for an error is a text, or an object with one member.
void take_codex_failure(TranscriptScribe& scribe, TranscriptTalk& talk, const json& error) {
  const auto& info = member(error, "codex_error_info");
  std::string kind = info.is_string() ? info.get<std::string>() : std::string();
  std::int64_t status = 0;
  if (info.is_object() && !info.empty()) {
    kind = info.begin().key();
    status = number_in(info.begin().value(), "http_status_code");
  }
  scribe.fail(talk, kind, text_in(error, "message"), status);
}

void take_codex_rest(TranscriptScribe& scribe, TranscriptTalk& talk, const json& payload) {
  const auto& error = member(payload, "error");
  if (error.is_object()) return take_codex_failure(scribe, talk, error);
  if (talk.turn.empty()) return scribe.rest(talk);
  const bool answered = member(payload, "last_agent_message").is_string();
  scribe.rest(talk, {}, "hook:Stop:" + talk.turn + (answered ? ":1" : ""));
}

void take_codex_row(TranscriptScribe& scribe, TranscriptTalk& talk, CodexMeaning meaning,
                    const json& payload) {
  switch (meaning) {
    case CodexMeaning::meta:
      break;
    case CodexMeaning::context:
      if (auto model = short_text(text_in(payload, "model")); !model.empty()) talk.model = model;
      if (talk.cwd.empty()) talk.cwd = short_text(text_in(payload, "cwd"));
      break;
    case CodexMeaning::begin:
      talk.turn = short_text(text_in(payload, "turn_id"));
      talk.prompt.clear();
      break;
    case CodexMeaning::prompt:
      return take_codex_prompt(scribe, talk, content_text(member(payload, "message")));
    case CodexMeaning::item:
      return take_codex_item(scribe, talk, payload);
    case CodexMeaning::message:
      return take_codex_message(scribe, talk, payload);
    case CodexMeaning::call:
    case CodexMeaning::shell:
      return take_codex_call(scribe, talk, payload);
    case CodexMeaning::search:
      return take_codex_search(scribe, talk, payload);
    case CodexMeaning::result:
      return take_codex_result(scribe, talk, payload);
    case CodexMeaning::use:
      return take_codex_use(scribe, talk, payload);
    case CodexMeaning::compact:
      return scribe.compact(talk, true);
    case CodexMeaning::aborted:
      return scribe.rest(talk, text_in(payload, "reason") == "interrupted"
                                   ? idle_reports::interrupted
                                   : std::string_view());
    case CodexMeaning::failure:
      return take_codex_failure(scribe, talk, payload);
    case CodexMeaning::trouble:
      return scribe.say(talk, ReportKind::message, "error",
                        content_text(member(payload, "message")));
    case CodexMeaning::rest:
      return take_codex_rest(scribe, talk, payload);
  }
}

}  // namespace

void take_codex(TranscriptScribe& scribe, TranscriptState& state, const json& line) {
  const auto& payload = member(line, "payload");
  if (!payload.is_object()) return;
  const auto type = text_in(line, "type");
  const auto kind = text_in(payload, "type");
  const auto* row = std::ranges::find_if(codex_rows, [&](const CodexRow& known) {
    return known.type == type && (known.payload.empty() || known.payload == kind);
  });
  if (row == std::end(codex_rows)) return;
  if (row->meaning == CodexMeaning::meta) return take_codex_meta(scribe, state, payload);
  if (state.own.empty() || scribe.at().time_since_epoch().count() < state.begins_ms) return;
  take_codex_row(scribe, scribe.talk(state.own, state.parent), row->meaning, payload);
}

}  // namespace watchdog::monitor
