#include "ingest/hooks.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "watchdog/content.h"
#include "watchdog/ids.h"
#include "watchdog/json.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t id_bytes_max = 256;
constexpr std::size_t word_bytes_max = 256;

/// Text as it is, anything else as its JSON; not more than an event may have.
std::string text_of(const json& value) {
  auto text = value.is_string() ? value.get<std::string>()
                                : value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > event_bytes_max) text = first_characters(text, event_bytes_max / 4);
  return text;
}

/// The members of one event. Agents call the same thing by different names: the first of those
/// given that is there counts.
class Members {
 public:
  using Aliases = std::initializer_list<const char*>;

  explicit Members(const json& object) : object_(object) {}

  [[nodiscard]] const json* find(Aliases names) const {
    for (const auto* name : names) {
      const auto found = object_.find(name);
      if (found != object_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }
  [[nodiscard]] std::string text(Aliases names) const {
    const auto* value = find(names);
    return value == nullptr ? std::string() : text_of(*value);
  }
  /// At most so many bytes of it.
  [[nodiscard]] std::string word(Aliases names, std::size_t bytes_max) const {
    auto text = this->text(names);
    while (text.size() > bytes_max) text = first_characters(text, text.size() / 2);
    return text;
  }

 private:
  const json& object_;
};

/// What an event means.
enum class Meaning : std::uint8_t {
  nothing,  ///< too many of them, and nothing that others do not say
  begin,
  prompt,
  call,
  result,
  failure,
  wait,
  notice,
  stop,        ///< the answer is complete
  stop_error,  ///< there will be none
  sub_begin,
  sub_end,
  task_done,
  compact,
  finish,
  other  ///< kept as a message
};

struct Row {
  std::string_view name;
  Meaning meaning;
};

/// Every event that says more than its name. No name means two things with two agents.
constexpr Row table[] = {
    // Claude Code, and Codex, which took its names over
    {"SessionStart", Meaning::begin},
    {"UserPromptSubmit", Meaning::prompt},
    {"PreToolUse", Meaning::call},
    {"PostToolUse", Meaning::result},
    {"PostToolUseFailure", Meaning::failure},
    {"PermissionRequest", Meaning::wait},
    {"PermissionDenied", Meaning::failure},
    {"Elicitation", Meaning::wait},
    {"ElicitationResult", Meaning::prompt},
    {"Notification", Meaning::notice},
    {"Stop", Meaning::stop},
    {"StopFailure", Meaning::stop_error},
    {"SubagentStart", Meaning::sub_begin},
    {"SubagentStop", Meaning::sub_end},
    {"TaskCompleted", Meaning::task_done},
    {"PreCompact", Meaning::compact},
    {"SessionEnd", Meaning::finish},
    // Codex: its `notify` program
    {"agent-turn-complete", Meaning::stop},
    // Gemini CLI
    {"BeforeAgent", Meaning::prompt},
    {"AfterAgent", Meaning::stop},
    {"BeforeTool", Meaning::call},
    {"AfterTool", Meaning::result},
    {"PreCompress", Meaning::compact},
    {"BeforeModel", Meaning::nothing},
    {"AfterModel", Meaning::nothing},
    {"BeforeToolSelection", Meaning::nothing},
    // opencode: the events of its plugins, `{"type", "properties"}`
    {"session.created", Meaning::begin},
    {"chat.message", Meaning::prompt},
    {"tool.execute.before", Meaning::call},
    {"tool.execute.after", Meaning::result},
    {"permission.updated", Meaning::wait},
    {"permission.asked", Meaning::wait},
    {"session.idle", Meaning::stop},
    {"session.error", Meaning::stop_error},
    {"session.compacted", Meaning::compact},
    {"session.deleted", Meaning::finish},
    {"message.updated", Meaning::nothing},
    {"message.part.updated", Meaning::nothing},
};

Meaning meaning_of(std::string_view name) {
  const auto* row = std::ranges::find(table, name, &Row::name);
  return row == std::end(table) ? Meaning::other : row->meaning;
}

Report make(ReportKind kind, std::string name = {}, std::string content = {}) {
  Report report;
  report.kind = kind;
  report.name = std::move(name);
  report.content = std::move(content);
  return report;
}

Report close_of(std::string reason) {
  auto report = make(ReportKind::end);
  if (reason.empty()) reason = reasons::task_complete;
  // That it was closed says nothing of how it went.
  report.detail = Outcome{
      .kind = OutcomeKind::completed, .reason = std::move(reason), .error = {}, .stated = false};
  return report;
}

/// Of a tool's answer the part that says that it failed; null: it did not, or does not say so.
const json* failure_in(const json& response) {
  if (!response.is_object()) return nullptr;
  const auto error = response.find("error");
  return error != response.end() && !error->is_null() ? &*error : nullptr;
}

Report call_report(Meaning meaning, const Members& members) {
  const auto* response = members.find({"tool_response", "tool_output", "output"});
  const auto* error = response == nullptr ? nullptr : failure_in(*response);
  const bool failed = meaning == Meaning::failure || error != nullptr;
  Report report;
  if (meaning == Meaning::call) {
    report = make(ReportKind::tool_call, {}, members.text({"tool_input", "args"}));
  } else if (failed) {
    report = make(ReportKind::error, {},
                  error != nullptr ? text_of(*error) : members.text({"error", "reason"}));
  } else {
    report = make(ReportKind::tool_result, {}, response == nullptr ? "" : text_of(*response));
  }
  report.name = members.word({"tool_name", "tool"}, word_bytes_max);
  report.call_id = members.word({"tool_use_id", "callID"}, id_bytes_max);
  return report;
}

/// What a notification asks for. Older agents say it in words alone.
Report notice_report(const Members& members) {
  const auto type = members.text({"notification_type"});
  const auto message = members.text({"message"});
  const auto says = [&](std::string_view words) {
    return message.find(words) != std::string::npos;
  };
  if (type == "permission_prompt" || type == "ToolPermission" ||
      (type.empty() && says("permission")))
    return make(ReportKind::wait, "approval", message);
  if (type == "elicitation_dialog") return make(ReportKind::wait, "input", message);
  if (type == "idle_prompt" || (type.empty() && says("waiting for your input")))
    return make(ReportKind::idle);
  return make(ReportKind::message, "notification", message);
}

/// What was asked last.
std::string prompt_in(const Members& members) {
  const auto* list = members.find({"input-messages"});
  if (list != nullptr && list->is_array()) return list->empty() ? "" : text_of(list->back());
  return members.text({"prompt", "user_response", "text"});
}

std::vector<Report> reports_of(Meaning meaning, const std::string& name, const Members& members) {
  switch (meaning) {
    case Meaning::nothing:
      return {};
    case Meaning::begin: {
      // The same conversation, shortened or resumed in place: the session went on.
      if (members.text({"source"}) == "compact") return {make(ReportKind::compaction)};
      auto start = make(ReportKind::start);
      start.detail = ProcessFacts{};
      return {start};
    }
    case Meaning::prompt:
      return {make(ReportKind::user_input, {}, prompt_in(members))};
    case Meaning::call:
    case Meaning::result:
    case Meaning::failure:
      return {call_report(meaning, members)};
    case Meaning::wait:
      return {make(ReportKind::wait, name == "Elicitation" ? "input" : "approval",
                   members.text({"tool_name", "title", "message"}))};
    case Meaning::notice:
      return {notice_report(members)};
    case Meaning::stop: {
      std::vector<Report> reports;
      if (name == "agent-turn-complete")
        reports.push_back(make(ReportKind::user_input, {}, prompt_in(members)));
      auto answer =
          members.text({"last_assistant_message", "prompt_response", "last-assistant-message"});
      if (!answer.empty())
        reports.push_back(make(ReportKind::message, "assistant", std::move(answer)));
      reports.push_back(make(ReportKind::idle));
      return reports;
    }
    case Meaning::stop_error: {
      const auto why = members.word({"error_type", "error"}, word_bytes_max);
      const auto details = members.text({"error_details", "last_assistant_message", "message"});
      std::vector<Report> reports{
          make(ReportKind::message, "error", details.empty() ? why : why + ": " + details)};
      reports.push_back(why == "rate_limit" ? make(ReportKind::wait, "quota")
                                            : make(ReportKind::idle));
      return reports;
    }
    case Meaning::sub_begin: {
      auto start = make(ReportKind::start);
      start.detail = ProcessFacts{};
      return {start};
    }
    case Meaning::sub_end: {
      std::vector<Report> reports;
      auto answer = members.text({"last_assistant_message"});
      if (!answer.empty())
        reports.push_back(make(ReportKind::message, "assistant", std::move(answer)));
      reports.push_back(close_of({}));
      return reports;
    }
    case Meaning::task_done:
      return {make(ReportKind::state_change, "task_completed",
                   members.text({"task_subject", "task_id"}))};
    case Meaning::compact:
      return {make(ReportKind::compaction)};
    case Meaning::finish:
      return {close_of(members.word({"reason"}, word_bytes_max))};
    case Meaning::other:
      break;
  }
  return {make(ReportKind::message, "hook", name)};
}

/// What tells this event from the next one of its name; empty: nothing does.
std::string identity_of(Meaning meaning, const Members& members) {
  switch (meaning) {
    case Meaning::call:
    case Meaning::result:
    case Meaning::failure:
      if (auto id = members.text({"tool_use_id", "callID"}); !id.empty()) return id;
      break;
    case Meaning::prompt:
    case Meaning::stop:
      if (auto id = members.text({"turn_id", "turn-id"}); !id.empty()) return id;
      break;
    case Meaning::sub_begin:
    case Meaning::sub_end:
      if (auto id = members.text({"agent_id"}); !id.empty()) return id;
      break;
    default:
      break;
  }
  return members.text({"timestamp"});
}

void identify(std::vector<Report>& reports, const std::string& name, const std::string& identity) {
  if (identity.empty()) return;
  for (std::size_t at = 0; at < reports.size(); ++at) {
    auto id = "hook:" + name + ":" + identity + (at == 0 ? "" : ":" + std::to_string(at));
    if (id.size() <= id_bytes_max) reports[at].event_id = std::move(id);
  }
}

/// The id with what no id may have replaced.
std::string session_id_of(std::string text) {
  for (auto& letter : text)
    if (!is_session_id(std::string_view(&letter, 1))) letter = '-';
  text.resize(std::min(text.size(), session_id_bytes_max));
  return text;
}

Error missing(const char* field, const char* question) {
  return {ErrorCode::malformed, std::string(field) + " is missing: " + question, field};
}

/// The object that an event's members are in. opencode puts them one below.
const json& members_in(const json& body) {
  const auto properties = body.find("properties");
  return properties != body.end() && properties->is_object() ? *properties : body;
}

}  // namespace

Result<HookEvent> hook_event(HookAgent agent, std::string_view body, const std::string& session) {
  if (!is_json(body)) return Error{ErrorCode::malformed, "the body is no JSON"};
  const auto parsed = json::parse(body, nullptr, false);
  if (!parsed.is_object())
    return Error{ErrorCode::malformed, "a hook's event must be a JSON object"};
  const auto name = Members(parsed).word({"hook_event_name", "type"}, word_bytes_max / 2);
  if (name.empty()) return missing("hook_event_name", "which event is it?");
  const auto meaning = meaning_of(name);
  const Members members(members_in(parsed));

  HookEvent event;
  event.session = session;
  if (session.empty()) {
    auto own = members.text({"session_id", "thread-id", "sessionID"});
    if (const auto* info = members.find({"info"});
        own.empty() && info != nullptr && info->is_object())
      own = Members(*info).text({"id"});
    event.session = session_id_of(std::move(own));
  }
  if (event.session.empty()) return missing("session_id", "whose event is it?");

  event.spec.agent = name_of(agent);
  const auto subagent = members.text({"agent_id"});
  if (!subagent.empty()) {
    event.spec.parent = event.session;
    event.session = session_id_of(event.session + ":" + subagent);
    if (auto type = members.word({"agent_type"}, word_bytes_max); !type.empty())
      event.spec.agent = std::move(type);
  }
  for (const auto* label : {"cwd", "model"})
    if (auto text = members.word({label}, label_bytes_max); !text.empty())
      event.spec.labels[label] = std::move(text);

  const bool nameless_subagent =
      subagent.empty() && (meaning == Meaning::sub_begin || meaning == Meaning::sub_end);
  // A session that is somebody else's is begun and ended by them.
  const bool not_ours = !session.empty() && subagent.empty() &&
                        (meaning == Meaning::begin || meaning == Meaning::finish);
  event.reports =
      reports_of(nameless_subagent || not_ours ? Meaning::other : meaning, name, members);
  identify(event.reports, name, identity_of(meaning, members));
  return event;
}

}  // namespace watchdog::monitor
