// Codex's transcript ("rollout"). `codex_rows` gives the meaning of a line by its type and the type
// of its payload. The first `session_meta` names the session; a fork's file goes on with a copy of
// another session's lines, which are older. Before September 2025 a line was only a payload, and
// only the first had a time. Several lines report the same thing in other words: a
// prompt, an answer and a call's end are each taken from one of them.
#include <algorithm>
#include <iterator>

#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "ingest/codex_failure.h"
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

/// Returns the session of an agent within Codex, as its hooks and the proxy name it: every agent is
/// a thread, and the first one has the session's id.
std::string session_of_thread(const std::string& session, const std::string& thread) {
  if (thread.empty() || thread == session) return as_session_id(thread);
  return as_session_id(session + ":" + thread);
}

void read_codex_meta(TranscriptCollector& collector, TranscriptState& state, const json& payload) {
  if (!state.own.empty()) return;  // of the session that it was forked from
  const auto thread = text_in(payload, "id");
  if (as_session_id(thread).empty()) return;
  state.begins_ms = collector.at().time_since_epoch().count();
  const auto& spawn = member(member(member(payload, "source"), "subagent"), "thread_spawn");
  auto parent = text_in(spawn, "parent_thread_id");
  if (parent.empty() && member(payload, "source").is_object())
    parent = text_in(payload, "parent_thread_id");
  // Older versions do not name the session beside the thread.
  auto session = text_in(payload, "session_id");
  if (session.empty()) session = parent;
  state.own = parent.empty() ? as_session_id(thread) : session_of_thread(session, thread);
  state.parent = session_of_thread(session, parent);
  auto& conversation = collector.conversation(state.own, state.parent);
  conversation.cwd = short_text(text_in(payload, "cwd"));
}

void read_codex_prompt(TranscriptCollector& collector, TranscriptSession& conversation,
                       std::string text) {
  constexpr std::size_t compared = 200;
  // It goes into a file of positions: not the text itself.
  const auto start = first_characters(text, compared);
  const auto clean = as_compared(start);
  const auto beginning = std::to_string(digest_of(clean ? std::string_view(*clean) : start));
  if (text.empty() || (conversation.works && beginning == conversation.prompt))
    return;  // older files have both
  conversation.prompt = beginning;
  collector.prompt(conversation, std::move(text));
}

void read_codex_item(TranscriptCollector& collector, TranscriptSession& conversation,
                     const json& payload) {
  const auto& item = member(payload, "item");
  if (text_in(item, "type") == "UserMessage")
    read_codex_prompt(collector, conversation, content_text(member(item, "content")));
}

/// Texts in a person's place that Codex wrote.
bool is_codex_note(std::string_view text) {
  constexpr std::string_view notes[] = {"<user_instructions>", "<environment_context>",
                                        "<turn_aborted>", "# AGENTS.md instructions"};
  return text.empty() ||
         std::ranges::any_of(notes, [&](auto note) { return text.starts_with(note); });
}

/// `is_plain`: no other line has the prompts.
void read_codex_message(TranscriptCollector& collector, TranscriptSession& conversation,
                        const json& payload, bool is_plain) {
  auto text = content_text(member(payload, "content"));
  if (is_plain && text_in(payload, "role") == "user" && !is_codex_note(text))
    return collector.prompt(conversation, std::move(text));
  if (text_in(payload, "role") != "assistant") return;
  collector.answered(conversation);
  if (text.empty()) return;
  collector.say(conversation, ReportKind::message, "assistant", std::move(text));
  // Not every version writes that the turn is over.
  conversation.may_rest = text_in(payload, "phase") != "commentary";
}

/// A call may start a command, or be about one that runs.
void note_codex_command(TranscriptSession& conversation, const std::string& id,
                        std::string_view tool, const std::string& arguments) {
  constexpr std::size_t shown_max = 80;
  auto& commands = conversation.commands;
  const auto said = json::parse(arguments, nullptr, false);
  if (tool == "exec_command" && commands.size() < TranscriptSession::calls_max)
    commands.push_back({.call = id, .text = first_bytes(text_in(said, "cmd"), shown_max)});
  if (tool != "write_stdin") return;
  const auto process = content_text(member(said, "session_id"));
  for (auto& command : commands)
    if (command.process == process) command.call = id;
}

/// A result says whether its command still runs.
void note_codex_end(TranscriptSession& conversation, const std::string& id,
                    std::string_view result) {
  constexpr std::string_view running = "\nProcess running with session ID ";
  auto& commands = conversation.commands;
  const auto command = std::ranges::find(commands, id, &LongCommand::call);
  if (id.empty() || command == commands.end()) return;
  const auto head = result.substr(0, result.find("\nOutput:"));
  const auto found = head.find(running);
  if (found == head.npos) {
    commands.erase(command);
    return;
  }
  const auto process = head.substr(found + running.size());
  command->process = first_bytes(process.substr(0, process.find('\n')), 32);
}

/// The commands that outlive the turn.
std::string codex_goes_on(const TranscriptSession& conversation) {
  std::vector<std::string> running;
  for (const auto& command : conversation.commands)
    if (!command.process.empty()) running.push_back(command.text);
  return commands_that_run(running);
}

void read_codex_call(TranscriptCollector& collector, TranscriptSession& conversation,
                     const json& payload) {
  collector.answered(conversation);
  auto arguments = content_text(member(payload, "arguments"));
  if (arguments.empty()) arguments = content_text(member(payload, "input"));
  if (arguments.empty()) arguments = content_text(member(payload, "action"));
  const auto id = text_in(payload, "call_id");
  auto tool = text_in(payload, "name");
  note_codex_command(conversation, id, tool, arguments);
  collector.call(conversation, id, std::move(tool), std::move(arguments));
}

/// The server searched by itself: the call is over.
void read_codex_search(TranscriptCollector& collector, TranscriptSession& conversation,
                       const json& payload) {
  auto id = text_in(payload, "id");
  if (id.empty()) id = text_in(payload, "call_id");
  if (id.empty()) return;
  collector.answered(conversation);
  collector.call(conversation, id, "web_search", content_text(member(payload, "action")));
  collector.result(conversation, id, text_in(payload, "status") == "failed",
                   text_in(payload, "status"), codex_failure);
}

void read_codex_result(TranscriptCollector& collector, TranscriptSession& conversation,
                       const json& payload) {
  const auto& output = member(payload, "output");
  const auto& success = member(output, "success");
  auto text = output.is_object() && output.contains("content")
                  ? content_text(member(output, "content"))
                  : content_text(output);
  const bool failed = (success.is_boolean() && !success.get<bool>()) || is_codex_failure(text);
  const auto id = text_in(payload, "call_id");
  note_codex_end(conversation, id, text);
  collector.result(conversation, id, failed, std::move(text), codex_failure);
}

void read_codex_use(TranscriptCollector& collector, TranscriptSession& conversation,
                    const json& payload) {
  const auto& total = member(member(payload, "info"), "total_token_usage");
  // As for other agents, tokens that the server had in its cache do not count.
  const auto input = number_in(total, "input_tokens");
  const auto cached = std::clamp<std::int64_t>(number_in(total, "cached_input_tokens"), 0,
                                               std::max<std::int64_t>(input, 0));
  const auto tokens = input - cached + number_in(total, "output_tokens");
  if (!total.is_object() || tokens <= conversation.tokens || tokens > budget_max) return;
  ++conversation.steps;
  collector.use_total(conversation, tokens);
}

/// The word for an error is a text, or an object with one member.
void read_codex_failure(TranscriptCollector& collector, TranscriptSession& conversation,
                        const json& error) {
  const auto& info = member(error, "codex_error_info");
  std::string kind = info.is_string() ? info.get<std::string>() : std::string();
  std::int64_t status = 0;
  if (info.is_object() && !info.empty()) {
    kind = info.begin().key();
    status = number_in(info.begin().value(), "http_status_code");
  }
  collector.fail(conversation, kind, text_in(error, "message"), status);
}

void read_codex_rest(TranscriptCollector& collector, TranscriptSession& conversation,
                     const json& payload) {
  const auto& error = member(payload, "error");
  if (error.is_object()) return read_codex_failure(collector, conversation, error);
  if (conversation.turn.empty()) return collector.rest(conversation);
  auto running = conversation.works ? codex_goes_on(conversation) : std::string();
  const auto why = running.empty() ? std::string_view() : idle_reports::goes_on;
  const bool answered = member(payload, "last_agent_message").is_string();
  collector.rest(conversation, why, "hook:Stop:" + conversation.turn + (answered ? ":1" : ""),
                 std::move(running));
}

void read_codex_row(TranscriptCollector& collector, TranscriptSession& conversation,
                    CodexMeaning meaning, const json& payload, bool is_plain) {
  switch (meaning) {
    case CodexMeaning::meta:
      break;
    case CodexMeaning::context:
      if (auto model = short_text(text_in(payload, "model")); !model.empty())
        conversation.model = model;
      if (conversation.cwd.empty()) conversation.cwd = short_text(text_in(payload, "cwd"));
      break;
    case CodexMeaning::begin:
      conversation.turn = short_text(text_in(payload, "turn_id"));
      conversation.prompt.clear();
      break;
    case CodexMeaning::prompt:
      return read_codex_prompt(collector, conversation, content_text(member(payload, "message")));
    case CodexMeaning::item:
      return read_codex_item(collector, conversation, payload);
    case CodexMeaning::message:
      return read_codex_message(collector, conversation, payload, is_plain);
    case CodexMeaning::call:
    case CodexMeaning::shell:
      return read_codex_call(collector, conversation, payload);
    case CodexMeaning::search:
      return read_codex_search(collector, conversation, payload);
    case CodexMeaning::result:
      return read_codex_result(collector, conversation, payload);
    case CodexMeaning::use:
      return read_codex_use(collector, conversation, payload);
    case CodexMeaning::compact:
      return collector.compact(conversation, true);
    case CodexMeaning::aborted:
      return collector.rest(conversation, text_in(payload, "reason") == "interrupted"
                                              ? idle_reports::interrupted
                                              : std::string_view());
    case CodexMeaning::failure:
      return read_codex_failure(collector, conversation, payload);
    case CodexMeaning::trouble:
      return collector.say(conversation, ReportKind::message, "error",
                           content_text(member(payload, "message")));
    case CodexMeaning::rest:
      return read_codex_rest(collector, conversation, payload);
  }
}

}  // namespace

void read_codex(TranscriptCollector& collector, TranscriptState& state, const json& line) {
  auto type = text_in(line, "type");
  if (state.own.empty() && type.empty() && line.contains("instructions")) {
    state.is_plain = true;
    return read_codex_meta(collector, state, line);
  }
  const bool is_plain = state.is_plain && !line.contains("payload");
  const auto& payload = is_plain ? line : member(line, "payload");
  if (!payload.is_object()) return;
  const auto kind = text_in(payload, "type");
  if (is_plain) type = "response_item";
  const auto* row = std::ranges::find_if(codex_rows, [&](const CodexRow& known) {
    return known.type == type && (known.payload.empty() || known.payload == kind);
  });
  if (row == std::end(codex_rows)) return;
  if (row->meaning == CodexMeaning::meta) return read_codex_meta(collector, state, payload);
  if (state.own.empty() || collector.at().time_since_epoch().count() < state.begins_ms) return;
  read_codex_row(collector, collector.conversation(state.own, state.parent), row->meaning, payload,
                 is_plain);
}

}  // namespace watchdog::monitor
