// Only agents are here whose terminal asks while the hook waits (Claude Code 2.1.197, opencode
// 1.18.33). Copilot CLI 1.0.102 asks after its hook, and its hook is called for calls that need no
// permission as well: a held one would stop the agent. A question with choices is answered by
// a call's arguments with the answer added to them, so those are kept as they came. A person must
// see what they allow: the text is the command itself, not what the agent calls it.
#include "ingest/hook_question.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ingest/hook_members.h"
#include "privacy/content.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using Members = HookMembers;

constexpr std::size_t input_bytes_max = 64'000;
constexpr std::size_t text_bytes_max = 16'000;
constexpr std::size_t choices_max = 20;

/// An event that asks, and whose answer the agent takes.
struct Asking {
  HookAgent agent;
  std::string_view event;
};
constexpr Asking askings[] = {
    {HookAgent::claude_code, "PermissionRequest"},
    {HookAgent::opencode, "permission.asked"},
    {HookAgent::opencode, "question.asked"},
};

/// True for a text that a person can be shown as it is. A secret may be shown to nobody, and what a
/// mark stands for, what is cut off, and what an invisible character turns, nobody should allow
/// unseen.
bool is_plain(const std::string& text) {
  return text.size() <= text_bytes_max && redact(text) == text && terminal_text(text) == text;
}

/// All that the call would do. Of a shell's command the words that describe it say nothing more.
std::string deed_in(const json& input, bool is_shell) {
  if (!input.is_object()) return hook_text(input);
  auto rest = input;
  std::string deed;
  for (const auto* name : {"command", "plan"}) {
    const auto found = rest.find(name);
    if (!deed.empty() || found == rest.end() || !found->is_string()) continue;
    deed = found->get<std::string>();
    rest.erase(found);
  }
  if (is_shell)
    for (const auto* name : {"description", "timeout"}) rest.erase(name);
  if (rest.empty()) return deed;
  return (deed.empty() ? "" : deed + "\n") +
         rest.dump(2, ' ', false, json::error_handler_t::replace);
}

/// The only question of a call that asks some; null: there are none, or several.
const json* only_question(const json& input) {
  if (!input.is_object()) return nullptr;
  const auto* list = Members(input).find({"questions"});
  const bool is_one = list != nullptr && list->is_array() && list->size() == 1;
  return is_one && list->front().is_object() ? &list->front() : nullptr;
}

/// The tool by which Claude Code's model asks a person. The arguments of another tool may have the
/// same members, and are then what the call would do.
constexpr std::string_view asking_tool = "AskUserQuestion";

bool asks_several(const json& input) {
  return input.is_object() && input.contains("questions") && only_question(input) == nullptr;
}

/// False: a choice cannot be shown as it is.
bool read_choices(const json& question, HeldQuestion& into) {
  const auto* options = Members(question).find({"options"});
  if (options == nullptr || !options->is_array()) return true;
  for (const auto& option : *options) {
    auto label = option.is_object() ? Members(option).text({"label"}) : hook_text(option);
    if (into.choices.size() == choices_max || !is_plain(label)) return false;
    if (!label.empty()) into.choices.push_back(std::move(label));
  }
  return true;
}

/// A question with choices; nothing: it has no words, or cannot be shown as it is.
std::optional<HookQuestion> choice_of(HookQuestion asked, const json& question) {
  asked.question.kind = QuestionKind::choice;
  asked.question.text = Members(question).text({"question"});
  const bool is_shown = is_plain(asked.question.text) && read_choices(question, asked.question);
  return is_shown && !asked.question.text.empty() ? std::optional(std::move(asked)) : std::nullopt;
}

std::optional<HookQuestion> permission_of(HookQuestion asked, std::string tool, std::string deed) {
  if (!is_plain(tool) || !is_plain(deed)) return {};
  asked.question.tool = std::move(tool);
  asked.question.text = std::move(deed);
  return asked;
}

/// opencode's event names the permission, what it is for, and the arguments that it concerns.
std::optional<HookQuestion> asked_by_opencode(HookQuestion asked, const json& properties) {
  if (asked.event == "question.asked") {
    const auto* question = only_question(properties);
    return question ? choice_of(std::move(asked), *question) : std::nullopt;
  }
  const Members members(properties);
  auto permission = members.text({"permission"});
  const auto* metadata = members.find({"metadata"});
  auto deed = metadata == nullptr || metadata->empty() ? members.text({"patterns"})
                                                       : deed_in(*metadata, permission == "bash");
  return permission_of(std::move(asked), std::move(permission), std::move(deed));
}

std::optional<HookQuestion> asked_by_claude(HookQuestion asked, const json& event) {
  const Members members(event);
  const auto* input = members.find({"tool_input"});
  if (input == nullptr) return {};
  asked.input = input->dump(-1, ' ', false, json::error_handler_t::replace);
  auto tool = members.text({"tool_name"});
  if (tool == asking_tool && asks_several(*input)) return {};
  if (const auto* question = tool == asking_tool ? only_question(*input) : nullptr)
    return choice_of(std::move(asked), *question);
  auto deed = deed_in(*input, tool == "Bash");
  return permission_of(std::move(asked), std::move(tool), std::move(deed));
}

void write_claude(JsonWriter& out, const HookQuestion& asked, const PersonAnswer& answer) {
  out.key("hookSpecificOutput").open_object().field("hookEventName", asked.event);
  out.key("decision").open_object().field("behavior", answer.allows ? "allow" : "deny");
  if (!answer.allows) {
    out.field("message", denial_of(answer));
  } else if (asked.question.kind == QuestionKind::choice) {
    auto input = json::parse(asked.input, nullptr, false);
    input["answers"] = json{{asked.question.text, answer.text}};
    out.key("updatedInput").raw(input.dump(-1, ' ', false, json::error_handler_t::replace));
  }
  out.close_object().close_object();
}

/// For the plugin, which passes `reply` on as it is.
void write_opencode(JsonWriter& out, const HookQuestion& asked, const PersonAnswer& answer) {
  const bool is_choice = asked.question.kind == QuestionKind::choice;
  out.field("answers", is_choice ? "question" : "permission").key("reply").open_object();
  if (is_choice) {
    out.key("answers").open_array();
    if (answer.allows) out.open_array().value(answer.text).close_array();
    out.close_array();
  } else {
    out.field("reply", answer.allows ? "once" : "reject");
    if (!answer.allows) out.field("message", denial_of(answer));
  }
  out.close_object();
}

}  // namespace

std::optional<HookQuestion> hook_question(HookAgent agent, std::string_view event,
                                          std::string_view body) {
  const auto is_known = std::ranges::any_of(
      askings, [&](const Asking& row) { return row.agent == agent && row.event == event; });
  if (!is_known || body.size() > input_bytes_max) return {};
  const auto whole = json::parse(body, nullptr, false);
  if (!whole.is_object()) return {};
  HookQuestion asked{.agent = agent, .event = std::string(event)};
  if (agent == HookAgent::claude_code) return asked_by_claude(std::move(asked), whole);
  const auto properties = whole.find("properties");
  const bool has = properties != whole.end() && properties->is_object();
  return has ? asked_by_opencode(std::move(asked), *properties) : std::nullopt;
}

std::string words_of(const PersonAnswer& answer, QuestionKind kind) {
  if (!answer.allows) return "deny";
  return kind == QuestionKind::permission ? "allow" : '"' + answer.text + '"';
}

std::string denial_of(const PersonAnswer& answer) {
  return "denied by " + (answer.by.empty() ? std::string("a person") : answer.by) +
         (answer.text.empty() ? "" : ": " + answer.text);
}

std::string hook_reply(const HookQuestion& asked, const PersonAnswer& answer) {
  JsonWriter out;
  out.open_object();
  asked.agent == HookAgent::claude_code ? write_claude(out, asked, answer)
                                        : write_opencode(out, asked, answer);
  out.close_object();
  return out.finish();
}

}  // namespace watchdog::monitor
