// Claude Code's transcript. `rows` gives the meaning of a line by its type and subtype; a function
// for each meaning reads it. One answer of the model has a line for each of its blocks, and each of
// them has the tokens of the whole answer. Lines of a subagent have `isSidechain`: they belong to a
// session of their own below, with the id that the hooks give it. `claude -p --output-format
// stream-json` writes the same lines with other names, mostly without times, and a last line
// `result`; there, the id of a subagent is that of its call.
#include <algorithm>
#include <iterator>

#include "facts/ids.h"
#include "ingest/own_limit.h"
#include "ingest/transcript_state.h"
#include "llm/provider.h"
#include "privacy/content.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

/// The meaning of a line.
enum class ClaudeMeaning : std::uint8_t {
  person,   ///< a prompt, or the results of calls
  answer,   ///< a part of an answer
  compact,  ///< the context was shortened
  retry,    ///< a request to the model failed, and is repeated
  rest,     ///< the turn is over
  begin,    ///< of a stream: the facts of the session
  outcome   ///< of a stream: how the turn ended
};

struct ClaudeRow {
  std::string_view type;
  std::string_view subtype;
  ClaudeMeaning meaning;
};

constexpr ClaudeRow claude_rows[] = {
    {"user", "", ClaudeMeaning::person},
    {"assistant", "", ClaudeMeaning::answer},
    {"system", "compact_boundary", ClaudeMeaning::compact},
    {"system", "api_error", ClaudeMeaning::retry},
    {"system", "turn_duration", ClaudeMeaning::rest},
    {"system", "init", ClaudeMeaning::begin},
    {"system", "api_retry", ClaudeMeaning::retry},
    {"result", "", ClaudeMeaning::outcome},
};

/// Beginnings of texts in a person's place that no person wrote as a prompt: commands of the
/// program itself, their output, and notes to the model.
constexpr std::string_view claude_notes[] = {
    "<command-name>", "<command-message>",   "<local-command-",     "<bash-input>",
    "<bash-stdout>",  "<bash-stderr>",       "<task-notification>", "<system-reminder>",
    "Caveat: ",       "<user-memory-input>", "<teammate-message"};

constexpr std::string_view claude_failure = "hook:PostToolUseFailure:";

bool begins_with_one(std::string_view text, const auto& beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](std::string_view begin) { return text.starts_with(begin); });
}

/// A line of the output as a stream.
bool is_of_stream(const json& line) {
  return !line.contains("sessionId");
}

TranscriptSession* claude_conversation(TranscriptCollector& collector, const json& line) {
  auto session = as_session_id(text_in(line, is_of_stream(line) ? "session_id" : "sessionId"));
  if (session.empty()) return nullptr;
  std::string parent;
  const auto call = is_of_stream(line) ? text_in(line, "parent_tool_use_id") : std::string();
  if (flag_in(line, "isSidechain") || !call.empty()) {
    const auto id = call.empty() ? text_in(line, "agentId") : call;
    parent = session;
    session = as_session_id(parent + ":" + (id.empty() ? "sidechain" : id));
    if (session == parent) return nullptr;
  }
  auto& conversation = collector.conversation(session, parent);
  if (conversation.cwd.empty()) conversation.cwd = text_in(line, "cwd");
  if (conversation.cwd.size() > label_bytes_max) conversation.cwd.clear();
  return &conversation;
}

/// Ends the subagent whose answer a call returns.
void end_claude_child(TranscriptCollector& collector, const std::string& session,
                      const json& line) {
  const auto& result = member(line, "toolUseResult");
  const auto id = text_in(result, "agentId");
  if (id.empty() || text_in(result, "status") != "completed") return;
  auto& child = collector.conversation(as_session_id(session + ":" + id), session);
  child.works = child.may_rest = false;
  child.calls.clear();
  Report end;
  end.kind = ReportKind::end;
  end.detail = Outcome{
      .kind = OutcomeKind::completed, .reason = "task_complete", .error = {}, .stated = false};
  collector.say(child, std::move(end));
}

void read_claude_text(TranscriptCollector& collector, TranscriptSession& conversation,
                      std::string text, const json& line) {
  if (text.starts_with("[Request interrupted by user"))
    return collector.rest(conversation, idle_reports::interrupted);
  if (text.empty() || flag_in(line, "isMeta") || begins_with_one(text, claude_notes)) return;
  if (flag_in(line, "isSynthetic")) return;
  if (flag_in(line, "isCompactSummary")) return collector.compact(conversation, true);
  // Version 2.0 starts such a subagent by itself, so that a later one begins at once.
  conversation.is_hidden = flag_in(line, "isSidechain") && text == "Warmup";
  collector.prompt(conversation, std::move(text));
}

void read_claude_person(TranscriptCollector& collector, TranscriptSession& conversation,
                        const json& line) {
  const auto& content = member(member(line, "message"), "content");
  if (!content.is_array())
    return read_claude_text(collector, conversation, content_text(content), line);
  std::string text;
  bool has_result = false;
  for (const auto& block : content) {
    const auto type = text_in(block, "type");
    if (type == "text") text += (text.empty() ? "" : "\n") + text_in(block, "text");
    if (type != "tool_result") continue;
    has_result = true;
    collector.result(conversation, text_in(block, "tool_use_id"), flag_in(block, "is_error"),
                     content_text(member(block, "content")), claude_failure);
  }
  if (!text.empty()) read_claude_text(collector, conversation, content_text(text), line);
  if (has_result) end_claude_child(collector, std::string(conversation.session), line);
}

/// An answer that the program made itself, because the model's server gave none.
void read_claude_failure(TranscriptCollector& collector, TranscriptSession& conversation,
                         const json& line) {
  auto status = number_in(line, "apiErrorStatus");
  if (status == 0) status = number_in(member(line, "apiError"), "status");
  collector.fail(conversation, text_in(line, "error"),
                 content_text(member(member(line, "message"), "content")), status);
}

void count_claude_use(TranscriptCollector& collector, TranscriptSession& conversation,
                      const json& message) {
  const auto& usage = member(message, "usage");
  if (!usage.is_object()) return;
  const auto tokens = std::clamp<std::int64_t>(number_in(usage, "input_tokens"), 0, budget_max) +
                      std::clamp<std::int64_t>(number_in(usage, "output_tokens"), 0, budget_max);
  if (tokens > 0) collector.use(conversation, text_in(message, "id"), tokens);
}

void read_claude_answer(TranscriptCollector& collector, TranscriptSession& conversation,
                        const json& line) {
  if (flag_in(line, "isApiErrorMessage")) return read_claude_failure(collector, conversation, line);
  const auto& message = member(line, "message");
  collector.answered(conversation);
  if (auto model = text_in(message, "model");
      !model.empty() && model != "<synthetic>" && model.size() <= label_bytes_max)
    conversation.model = std::move(model);
  std::string text;
  bool calls = false;
  const auto& content = member(message, "content");
  if (content.is_string()) text = content_text(content);
  if (content.is_array()) {
    for (const auto& block : content) {
      const auto type = text_in(block, "type");
      if (type == "text") text += (text.empty() ? "" : "\n") + text_in(block, "text");
      if (type == "tool_use") calls = true;
    }
  }
  if (!text.empty())
    collector.say(conversation, ReportKind::message, "assistant", content_text(text));
  if (calls) {
    for (const auto& block : content) {
      if (text_in(block, "type") != "tool_use") continue;
      const auto& input = member(block, "input");
      collector.call(conversation, text_in(block, "id"), text_in(block, "name"),
                     content_text(input), own_limit(text_in(block, "name"), &input));
    }
  }
  count_claude_use(collector, conversation, message);
  if (calls || text.empty()) return;
  const auto stop = text_in(message, "stop_reason");
  if (stop == "end_turn" || stop == "stop_sequence" || stop == "refusal")
    return collector.rest(conversation);
  conversation.may_rest = stop != "tool_use" && !is_of_stream(line);
}

/// A later turn may follow in the stream. If not, the session ends like this one.
void read_claude_outcome(TranscriptCollector& collector, TranscriptSession& conversation,
                         const json& line) {
  const auto& cost = member(line, "total_cost_usd");
  if (cost.is_number() && cost.get<double>() > 0 && cost.get<double>() < 1e9)
    collector.use_total(conversation, conversation.tokens, cost.get<double>());
  const auto subtype = text_in(line, "subtype");
  const auto text = content_text(member(line, line.contains("errors") ? "errors" : "result"));
  Outcome outcome{.kind = OutcomeKind::completed, .reason = std::string(reasons::task_complete)};
  if (subtype == "error_max_turns") {
    outcome = {.kind = OutcomeKind::incomplete,
               .reason = std::string(reasons::max_iterations_reached)};
  } else if (subtype.starts_with("error_max_budget")) {
    outcome = {.kind = OutcomeKind::incomplete, .reason = std::string(reasons::budget_exhausted)};
  } else if (subtype != "success" || flag_in(line, "is_error")) {
    outcome = {.kind = OutcomeKind::failed, .reason = std::string(reasons::error), .error = text};
    if (outcome.error.empty()) outcome.error = subtype;
    if (conversation.works)
      collector.fail(conversation, subtype == "success" ? std::string() : subtype, text,
                     number_in(line, "api_error_status"));
  } else if (!conversation.works) {
    collector.answered(conversation);
  }
  if (outcome.kind != OutcomeKind::failed) collector.rest(conversation);
  conversation.outcome = std::move(outcome);
}

/// The program tries again by itself. One wait stands for all tries.
void read_claude_retry(TranscriptCollector& collector, TranscriptSession& conversation,
                       const json& line) {
  const auto& error = member(line, "error");
  auto status = number_in(error, "status");
  if (status == 0) status = number_in(line, "error_status");
  const auto subject = status == 429   ? wait_reports::quota
                       : status >= 500 ? wait_reports::overload
                                       : wait_reports::retry;
  if (conversation.waiting_for == subject) return;
  conversation.waiting_for = subject;
  conversation.works = true;
  Report wait;
  wait.kind = ReportKind::wait;
  wait.name = subject;
  wait.content = text_in(error, "message");
  if (wait.content.empty()) wait.content = text_in(member(error, "error"), "message");
  if (wait.content.empty() && status > 0) wait.content = "HTTP " + std::to_string(status);
  wait.provider = provider_in_text(wait.content);
  if (subject == wait_reports::retry) {
    const auto* said = line.contains("retryInMs") ? "retryInMs" : "retry_delay_ms";
    const auto pause = std::clamp<std::int64_t>(number_in(line, said), 0, 86'400'000);
    wait.until = collector.at() + Millis{pause};
  }
  collector.say(conversation, std::move(wait));
}

}  // namespace

void read_claude_code(TranscriptCollector& collector, const json& line) {
  const auto type = text_in(line, "type");
  const auto subtype = text_in(line, "subtype");
  const auto* row = std::ranges::find_if(claude_rows, [&](const ClaudeRow& known) {
    return known.type == type && (known.subtype.empty() || known.subtype == subtype);
  });
  if (row == std::end(claude_rows)) return;
  auto* conversation = claude_conversation(collector, line);
  if (conversation == nullptr || collector.is_copy(*conversation, text_in(line, "uuid"))) return;
  conversation->outcome.reset();
  switch (row->meaning) {
    case ClaudeMeaning::person:
      return read_claude_person(collector, *conversation, line);
    case ClaudeMeaning::answer:
      return read_claude_answer(collector, *conversation, line);
    case ClaudeMeaning::compact:
      return collector.compact(*conversation, false);
    case ClaudeMeaning::retry:
      return read_claude_retry(collector, *conversation, line);
    case ClaudeMeaning::rest:
      return collector.rest(*conversation);
    case ClaudeMeaning::begin:
      if (auto model = text_in(line, "model"); model.size() <= label_bytes_max)
        conversation->model = std::move(model);
      return;
    case ClaudeMeaning::outcome:
      return read_claude_outcome(collector, *conversation, line);
  }
}

}  // namespace watchdog::monitor
