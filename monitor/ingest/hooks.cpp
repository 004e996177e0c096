// Maps hook events to reports. `hook_table` gives the meaning of each event name, whichever agent
// sent it. A function for each meaning reads the members under all names that the agents use. It
// has no clock and no state. Reports get event ids from what identifies their event, so a repeated
// hook is stored once.
#include "ingest/hooks.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "facts/agent_tools.h"
#include "facts/digest.h"
#include "facts/ids.h"
#include "ingest/bounded_text.h"
#include "ingest/hook_members.h"
#include "ingest/hook_table.h"
#include "ingest/own_limit.h"
#include "ingest/question.h"
#include "ingest/turn_failure.h"
#include "llm/provider.h"
#include "privacy/content.h"
#include "text/figures.h"
#include "text/typed.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

using hook_table::Meaning;
using nlohmann::json;
using Members = HookMembers;

constexpr std::size_t id_bytes_max = 256;
constexpr std::size_t word_bytes_max = 256;

/// Its row; null: no table names the event.
const hook_table::Row* row_of(std::string_view name) {
  const auto* row = std::ranges::find(hook_table::rows, name, &hook_table::Row::name);
  return row == std::end(hook_table::rows) ? nullptr : row;
}

/// Opencode's bus sends dozens of events a second that do not concern the session's state.
Meaning meaning_of(HookAgent agent, std::string_view name) {
  if (const auto* row = row_of(name)) return row->meaning;
  const bool is_chatty = agent == HookAgent::opencode || agent == HookAgent::cursor;
  return is_chatty ? Meaning::nothing : Meaning::other;
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

/// The agent is gone, whatever it was doing.
Report end_by_answer(std::string reason) {
  auto report = close_of(std::move(reason));
  std::get<Outcome>(report.detail).by_answer = true;
  return report;
}

Report rest_of(std::string_view why) {
  return make(ReportKind::idle, std::string(why));
}

/// `"error": ""` and `"error": false` say that there was none.
bool says_nothing(const json& error) {
  return error.is_null() || error == false || error == "" ||
         (error.is_structured() && error.empty());
}

/// Copilot CLI calls a command that failed a success. Only the last line says how the command
/// ended.
bool ends_with_failure(const json& text) {
  if (!text.is_string()) return false;
  const std::string_view whole = text.get_ref<const std::string&>();
  const auto line = whole.substr(whole.rfind('\n') + 1);
  return line.starts_with("<shellId: ") && exit_code_in(line) != 0;
}

/// Of a tool's answer the part that says that it failed; null: it did not, or does not say so.
const json* failure_in(const json& response) {
  if (!response.is_object()) return nullptr;
  // Copilot CLI says in a word how it went.
  if (const auto type = response.find("result_type");
      type != response.end() && type->is_string() && *type != "success" && *type != "")
    return response.contains("text_result_for_llm") ? &response["text_result_for_llm"] : &*type;
  if (const auto text = response.find("text_result_for_llm");
      text != response.end() && ends_with_failure(*text))
    return &*text;
  const auto error = response.find("error");
  return error != response.end() && !says_nothing(*error) ? &*error : nullptr;
}

/// Returns the tool's text. Gemini CLI shows a person the same in other words.
std::string result_text(const json* response) {
  if (response == nullptr) return {};
  if (response->is_object()) {
    for (const auto* name : {"llmContent", "text_result_for_llm"}) {
      const auto given = response->find(name);
      if (given != response->end() && given->is_string()) return hook_text(*given);
    }
  }
  return hook_text(*response);
}

Report call_report(Meaning meaning, const Members& members) {
  const auto* response = members.find({"tool_response", "tool_output", "tool_result", "output"});
  const auto* error = response == nullptr ? nullptr : failure_in(*response);
  const bool failed = meaning == Meaning::failure || error != nullptr;
  Report report;
  if (meaning == Meaning::call) {
    report = make(ReportKind::tool_call, {}, members.text({"tool_input", "args"}));
  } else if (failed) {
    report = make(
        ReportKind::error, {},
        error != nullptr ? hook_text(*error) : members.text({"error", "error_message", "reason"}));
  } else {
    report = make(ReportKind::tool_result, {}, result_text(response));
  }
  report.name = members.word({"tool_name", "tool"}, word_bytes_max);
  report.call_id = members.word({"tool_use_id", "callID"}, id_bytes_max);
  return report;
}

/// The question that a call puts to a person.
std::string question_in(const Members& members) {
  const auto* input = members.find({"tool_input", "args"});
  const auto* questions = input != nullptr && input->is_object()
                              ? Members(*input).find({"questions"})
                              : members.find({"questions"});
  if (questions != nullptr && questions->is_array() && !questions->empty() &&
      questions->front().is_object())
    return Members(questions->front()).text({"question", "header"});
  if (input == nullptr || !input->is_object()) return {};
  return Members(*input).text({"question", "plan"});
}

/// Returns the question to a person: the tool, and the purpose.
std::string asked_in(const Members& members) {
  if (auto question = question_in(members); !question.empty()) return question;
  auto asked = members.text({"tool_name", "title", "message", "permission"});
  for (const auto* name : {"tool_input", "metadata"}) {
    const auto* input = members.find({name});
    if (input == nullptr || !input->is_object()) continue;
    // The description is the agent's own word. A person decides about the command.
    const auto what = Members(*input).text({"command", "description"});
    if (!what.empty()) return asked.empty() ? what : asked + ": " + what;
  }
  const auto* patterns = members.find({"patterns"});  // opencode
  const bool is_named = patterns != nullptr && patterns->is_array() && !patterns->empty() &&
                        patterns->front().is_string() && !asked.empty();
  return is_named ? asked + ": " + hook_text(patterns->front()) : asked;
}

/// A wait for what a person says to one call.
Report wait_at(std::string call_id, std::string_view waits_for, std::string question) {
  auto wait = make(ReportKind::wait, std::string(waits_for), std::move(question));
  wait.call_id = std::move(call_id);
  return wait;
}

/// The call for which a person is asked; empty: the event does not name it.
std::string call_asked_for(const Members& members) {
  const auto* tool = members.find({"tool"});  // opencode
  const json& where = tool != nullptr && tool->is_object() ? *tool : members.all();
  return Members(where).word({"tool_use_id", "callID"}, id_bytes_max);
}

/// Null: the tool asks nobody.
const hook_table::Asking* asking_tool(std::string_view tool) {
  const auto* found = std::ranges::find(hook_table::asking_tools, tool, &hook_table::Asking::tool);
  return found == std::end(hook_table::asking_tools) ? nullptr : found;
}

/// A call, and the wait for a person where it asks one.
std::vector<Report> call_reports(const Members& members) {
  std::vector<Report> reports{call_report(Meaning::call, members)};
  if (const auto* asks = asking_tool(reports.front().name); asks != nullptr)
    reports.push_back(wait_at(reports.front().call_id, asks->waits_for, question_in(members)));
  return reports;
}

/// True if a person stopped the call, and with it the turn.
bool is_interrupted(const Members& members) {
  if (const auto* flag = members.find({"is_interrupt"}); flag != nullptr && flag->is_boolean())
    return flag->get<bool>();
  const auto* response = members.find({"tool_response"});
  if (response == nullptr || !response->is_object()) return false;
  return Members(*response).text({"returnDisplay"}) == "Command cancelled by user.";
}

/// The end of a call, and of its turn where a person stopped both.
std::vector<Report> result_reports(Meaning meaning, const Members& members) {
  const bool interrupted = is_interrupted(members);
  std::vector<Report> reports{call_report(meaning, members)};
  if (interrupted) {
    reports.front().kind = ReportKind::error;
    reports.push_back(rest_of(idle_reports::interrupted));
  }
  return reports;
}

TurnFailure turn_failure_in(const Members& members) {
  TurnFailure failure;
  const auto* error = members.find({"error"});
  if (error == nullptr || !error->is_object()) {
    failure.kind = members.word({"error_type", "error"}, word_bytes_max);
    failure.text =
        members.text({"error_message", "error_details", "last_assistant_message", "message"});
    for (const auto* name : {"error_details", "last_assistant_message", "message"})
      if (auto more = members.text({name}); !more.empty() && more != failure.text)
        failure.more += (failure.more.empty() ? "" : "\n") + more;
    return failure;
  }
  const Members said(*error);  // opencode, Copilot CLI
  failure.kind = said.word({"name"}, word_bytes_max);
  failure.text = said.text({"message"});
  if (failure.kind == "Error") failure.kind.clear();  // of any kind
  // Copilot CLI gives what the model's server said as it came.
  if (failure.text.starts_with('{') && check_json(failure.text)) {
    const auto whole = json::parse(failure.text, nullptr, false);
    const Members answer(whole);
    if (auto kind = answer.word({"code", "type"}, word_bytes_max); !kind.empty())
      failure.kind = std::move(kind);
    if (auto text = answer.text({"message"}); !text.empty()) failure.text = std::move(text);
  }
  if (const auto* data = said.find({"data"}); data != nullptr && data->is_object()) {
    if (failure.text.empty()) failure.text = Members(*data).text({"message"});
    if (const auto* status = Members(*data).find({"statusCode"});
        status != nullptr && status->is_number_integer())
      failure.status = status->get<std::int64_t>();
  }
  return failure;
}

std::vector<Report> failure_reports(const Members& members, WallTime now) {
  const auto failure = turn_failure_in(members);
  if (failure.kind == "MessageAbortedError") return {rest_of(idle_reports::interrupted)};
  if (const auto* goes_on = members.find({"recoverable"}); goes_on == nullptr || *goes_on != true)
    return failed_turn(failure, now);
  auto text = failure.kind.empty() || failure.text.empty() ? failure.kind + failure.text
                                                           : failure.kind + ": " + failure.text;
  if (members.text({"error_context"}) != "model_call")
    return {make(ReportKind::message, "error", std::move(text))};
  // Copilot CLI asks the model's server again.
  auto wait = make(ReportKind::wait, std::string(wait_reports::retry), std::move(text));
  wait.provider = provider_in_text(wait.content);
  return {std::move(wait)};
}

/// Returns reports for opencode's states: idle, busy, or a later retry.
std::vector<Report> status_reports(const Members& members) {
  const auto* status = members.find({"status"});
  if (status == nullptr || !status->is_object()) return {};
  const Members said(*status);
  const auto type = said.text({"type"});
  if (type == "idle") return {rest_of(idle_reports::reminder)};
  if (type == "busy") return {make(ReportKind::resume, std::string(wait_reports::retry))};
  if (type != "retry") return {};
  auto wait = make(ReportKind::wait, std::string(wait_reports::retry), said.text({"message"}));
  wait.provider = provider_in_text(wait.content);
  if (const auto* next = said.find({"next"}); next != nullptr && next->is_number_integer()) {
    constexpr std::int64_t year_2001 = 978'307'200'000;
    if (const auto ms = next->get<std::int64_t>(); ms > year_2001)
      wait.until = WallTime{Millis{ms}};
  }
  return {std::move(wait)};
}

/// opencode has no hook for a failed call. Its message parts report that end.
std::vector<Report> part_reports(const Members& members) {
  const auto* part = members.find({"part"});
  if (part == nullptr || !part->is_object()) return {};
  const Members said(*part);
  const auto* state = said.find({"state"});
  if (said.text({"type"}) != "tool" || state == nullptr || !state->is_object()) return {};
  if (Members(*state).text({"status"}) != "error") return {};
  auto report =
      make(ReportKind::error, said.word({"tool"}, word_bytes_max), Members(*state).text({"error"}));
  report.call_id = said.word({"callID"}, id_bytes_max);
  if (!report.call_id.empty()) report.event_id = "hook:message.part.updated:" + report.call_id;
  if (report.event_id.size() > id_bytes_max) report.event_id.clear();
  return {std::move(report)};
}

/// A conversation that Gemini CLI shortened begins with a snapshot of what it left out. The same
/// snapshot comes with every request from then on: it counts once.
std::vector<Report> request_reports(const Members& members) {
  constexpr std::size_t messages_looked_at = 4;
  const auto* request = members.find({"llm_request"});
  if (request == nullptr || !request->is_object()) return {};
  const auto* messages = Members(*request).find({"messages"});
  if (messages == nullptr || !messages->is_array()) return {};
  for (std::size_t at = 0; at < std::min(messages->size(), messages_looked_at); ++at) {
    const auto& message = (*messages)[at];
    if (!message.is_object()) continue;
    const auto text = Members(message).text({"content"});
    if (text.find("<state_snapshot>") == text.npos) continue;
    auto report = make(ReportKind::compaction);
    report.event_id = "hook:snapshot:" + std::to_string(digest_of(text));
    return {std::move(report)};
  }
  return {};
}

/// Gemini CLI names the command beside the text of its notification.
std::string with_details(std::string message, const Members& members) {
  const auto* details = members.find({"details"});
  if (details == nullptr || !details->is_object()) return message;
  const Members said(*details);
  const auto command = said.text({"command"});
  return command.empty() ? message : said.text({"title"}) + ": " + command;
}

/// Returns the report of a notification. Older agents have only its text.
Report notice_report(const Members& members) {
  const auto type = members.text({"notification_type"});
  const auto message = members.text({"message"});
  const auto says = [&](std::string_view words) {
    return message.find(words) != std::string::npos;
  };
  if (type == "permission_prompt" || type == "ToolPermission" ||
      (type.empty() && says("permission")))
    return make(ReportKind::wait, "approval", with_details(message, members));
  if (type == "elicitation_dialog" || type == "agent_needs_input")
    return make(ReportKind::wait, "input", message);
  if (type == "elicitation_complete" || type == "elicitation_response")
    return make(ReportKind::resume, "input");
  // Claude Code sends it a minute after each answer, asked or not, and while a question is open
  // too. It says no more than the end of the turn did, so it calls nobody.
  if (type == "idle_prompt" || (type.empty() && says("waiting for your input")))
    return rest_of(idle_reports::reminder);
  return make(ReportKind::message, "notification", message);
}

/// Returns the newest prompt.
std::string prompt_in(const Members& members) {
  const auto* list = members.find({"input-messages"});
  if (list != nullptr && list->is_array()) return list->empty() ? "" : hook_text(list->back());
  return members.text({"prompt", "user_response", "text"});
}

/// Returns the id of the question that is asked or answered, as event id of its wait; empty: it
/// has none. With it an answer ends only the wait for its question.
std::string ask_id_in(const Members& members, Members::Aliases names) {
  const auto* id = members.find(names);
  if (id == nullptr || !id->is_string() || id->get_ref<const std::string&>().empty()) return {};
  auto ask = "hook:ask:" + id->get<std::string>();
  return ask.size() <= id_bytes_max ? ask : std::string();
}

/// For what an event says that the session waits, or waited.
std::string_view waits_for(std::string_view event) {
  const bool is_question = event == "Elicitation" || event.starts_with("question");
  return is_question ? wait_reports::input : wait_reports::approval;
}

/// True if a hook of the user refused the stop before this one.
bool is_refused_stop(const Members& members) {
  const auto* active = members.find({"stop_hook_active"});
  return active != nullptr && *active == true;
}

/// The commands that go on after the answer, and the times that wake the agent. Subagents are
/// sessions of their own. A teammate is called running while it rests, too. Empty: nothing.
std::string goes_on_in(const Members& members) {
  std::vector<std::string> commands;
  if (const auto* tasks = members.find({"background_tasks"}); tasks != nullptr && tasks->is_array())
    for (const auto& task : *tasks) {
      if (!task.is_object()) continue;
      const Members said(task);
      const auto type = said.word({"type"}, word_bytes_max);
      const auto status = said.word({"status"}, word_bytes_max);
      if (type == "subagent" || type == "teammate" || (!status.empty() && status != "running"))
        continue;
      commands.push_back(said.word({"command", "description", "id"}, word_bytes_max));
    }
  auto text = commands_that_run(commands);
  const auto* wakes = members.find({"session_crons"});
  if (wakes == nullptr || !wakes->is_array() || wakes->empty() || !wakes->front().is_object())
    return text;
  const Members first(wakes->front());
  return text + (text.empty() ? "" : "; ") + "wakes itself (" +
         first.word({"cron", "schedule", "next_run", "id"}, word_bytes_max) + ")";
}

/// The answer is complete.
Report complete_of(const Members& members) {
  auto goes_on = goes_on_in(members);
  if (goes_on.empty()) return make(ReportKind::idle);
  return make(ReportKind::idle, std::string(idle_reports::goes_on), std::move(goes_on));
}

/// A prompt, or what the agent's own program says in a person's place.
Report prompt_of(std::string prompt) {
  if (!prompt.empty() && typed(prompt).empty())
    return make(ReportKind::resume, std::string(resume_reports::woken), std::move(prompt));
  return make(ReportKind::user_input, {}, std::move(prompt));
}

/// Gemini CLI may never say that its turn is over. The last piece of its model's text does. A
/// call of a tool has an event of its own, which follows at once.
std::vector<Report> model_part_reports(const Members& members) {
  const auto* response = members.find({"llm_response"});
  if (response == nullptr || !response->is_object()) return {};
  const auto candidates = response->find("candidates");
  if (candidates == response->end() || !candidates->is_array() || candidates->empty()) return {};
  const auto& first = candidates->front();
  if (!first.is_object() || first.value("finishReason", json()) != "STOP") return {};
  if (Members(*response).text({"text"}).empty()) return {};
  return {make(ReportKind::idle)};
}

/// Reports of an agent that has ended its turn.
std::vector<Report> stop_reports(const std::string& name, const Members& members) {
  std::vector<Report> reports;
  if (is_refused_stop(members))
    reports.push_back(make(ReportKind::resume, std::string(resume_reports::stop_refused)));
  if (name == "agent-turn-complete")
    reports.push_back(make(ReportKind::user_input, {}, prompt_in(members)));
  auto answer =
      members.text({"last_assistant_message", "prompt_response", "last-assistant-message"});
  auto question = closing_question(answer);
  if (!answer.empty()) reports.push_back(make(ReportKind::message, "assistant", std::move(answer)));
  // The turn is over, and its person is asked.
  reports.push_back(complete_of(members));
  if (!question.empty()) reports.push_back(wait_at({}, wait_reports::input, std::move(question)));
  return reports;
}

Report start_report() {
  auto start = make(ReportKind::start);
  start.detail = ProcessFacts{};
  return start;
}

Report other_report(const std::string& name, const Members& members) {
  const auto teammate = members.word({"teammate_name"}, word_bytes_max);
  return make(ReportKind::message, "hook", teammate.empty() ? name : name + ": " + teammate);
}

std::vector<Report> reports_of(Meaning meaning, const std::string& name, const Members& members,
                               WallTime now) {
  switch (meaning) {
    case Meaning::nothing:
      return {};
    case Meaning::begin:
      // The session goes on with a shorter conversation. `PreCompact` came before.
      if (members.text({"source"}) == "compact") break;
      return {start_report()};
    case Meaning::prompt:
      return {prompt_of(prompt_in(members))};
    case Meaning::call:
      return call_reports(members);
    case Meaning::result:
    case Meaning::failure:
      return result_reports(meaning, members);
    case Meaning::wait: {
      const auto* asks = asking_tool(members.text({"tool_name"}));
      auto wait = wait_at(call_asked_for(members), asks ? asks->waits_for : waits_for(name),
                          asked_in(members));
      wait.event_id = ask_id_in(members, {"id"});
      return {std::move(wait)};
    }
    case Meaning::answered: {
      auto answer = make(ReportKind::resume, name == "answered" ? "" : std::string(waits_for(name)),
                         members.text({"reply", "response"}));
      answer.call_id = ask_id_in(members, {"requestID", "permissionID", "id"});
      if (answer.call_id.empty()) answer.call_id = call_asked_for(members);
      return {std::move(answer)};
    }
    case Meaning::status:
      return status_reports(members);
    case Meaning::part:
      return part_reports(members);
    case Meaning::request:
      return request_reports(members);
    case Meaning::model_part:
      return model_part_reports(members);
    case Meaning::rest:
      return {rest_of(idle_reports::reminder)};
    case Meaning::interrupt:
      return {rest_of(idle_reports::interrupted)};
    case Meaning::notice:
      return {notice_report(members)};
    case Meaning::answer:
      return {make(ReportKind::message, "assistant", members.text({"text"}))};
    case Meaning::stop_by_status: {
      const auto status = members.text({"status"});
      if (status == "aborted") return {rest_of(idle_reports::interrupted)};
      return status == "error" ? failure_reports(members, now)
                               : std::vector<Report>{make(ReportKind::idle)};
    }
    case Meaning::stop:
      return stop_reports(name, members);
    case Meaning::stop_error:
      return failure_reports(members, now);
    case Meaning::sub_begin:
      // It works from its start on, and no person prompts it.
      return {start_report(), make(ReportKind::message, "hook", name)};
    case Meaning::sub_end: {
      std::vector<Report> reports;
      auto answer = members.text({"last_assistant_message"});
      if (!answer.empty())
        reports.push_back(make(ReportKind::message, "assistant", std::move(answer)));
      // A program that it left running wakes it.
      auto rest = complete_of(members);
      reports.push_back(rest.name == idle_reports::goes_on ? std::move(rest) : close_of({}));
      return reports;
    }
    case Meaning::task_done:
      return {make(ReportKind::state_change, "task_completed",
                   members.text({"task_subject", "task_id"}))};
    case Meaning::compact:
      return {make(ReportKind::compaction)};
    case Meaning::finish:
      return {end_by_answer(members.word({"reason"}, word_bytes_max))};
    case Meaning::other:
      break;
  }
  return {other_report(name, members)};
}

/// Returns what distinguishes this event from the next one of its name; empty: nothing. Ids of
/// turns and subagents come again with later events: the Joiner tells these apart.
std::string identity_of(Meaning meaning, const Members& members, std::string_view body) {
  switch (meaning) {
    case Meaning::call:
    case Meaning::result:
    case Meaning::failure:
      if (auto id = members.text({"tool_use_id", "callID"}); !id.empty()) return id;
      break;
    case Meaning::prompt:
    case Meaning::stop:
      // A turn that goes on after a refused stop stops again.
      if (is_refused_stop(members)) return {};
      if (auto id = members.text({"turn_id", "turn-id"}); !id.empty()) return id;
      break;
    case Meaning::sub_begin:
    case Meaning::sub_end:
      if (auto id = members.text({"agent_id", "subagent_id"}); !id.empty()) return id;
      break;
    default:
      break;
  }
  // Several events may have the same moment.
  auto moment = members.text({"timestamp"});
  return moment.empty() ? moment : moment + ":" + std::to_string(digest_of(body));
}

void identify(std::vector<Report>& reports, const std::string& name, const std::string& identity) {
  if (identity.empty()) return;
  for (std::size_t at = 0; at < reports.size(); ++at) {
    auto id = "hook:" + name + ":" + identity + (at == 0 ? "" : ":" + std::to_string(at));
    if (id.size() <= id_bytes_max && reports[at].event_id.empty())
      reports[at].event_id = std::move(id);
  }
}

Error missing(const char* field, const char* question) {
  return {ErrorCode::malformed, std::string(field) + " is missing: " + question, field};
}

/// The object that an event's members are in. opencode puts them one below.
const json& members_in(const json& body) {
  const auto properties = body.find("properties");
  return properties != body.end() && properties->is_object() ? *properties : body;
}

/// Some events of Copilot CLI have their members under other names than the rest.
void give_usual_names(json& event) {
  for (const auto& [odd, usual] :
       {std::pair{"toolName", "tool_name"}, std::pair{"toolInput", "tool_input"}})
    if (event.contains(odd) && !event.contains(usual)) event[usual] = event[odd];
}

/// Claude Code sums a long conversation up with an agent without a type, of which only the end is
/// reported. It does no part of the task.
bool ends_own_helper(Meaning meaning, const Members& members) {
  const auto* type = members.find({"agent_type"});
  return meaning == Meaning::sub_end && type != nullptr && *type == "";
}

/// The folder in which the agent works; empty: the event does not say it. Our plugin for opencode
/// says it beside the event's members, and opencode itself when a session begins.
std::string folder_in(const json& event, const Members& members) {
  for (const auto& where : {members, Members(event)})
    if (auto folder = where.word({"cwd"}, label_bytes_max); !folder.empty()) return folder;
  std::string folder;
  const auto* roots = members.find({"workspace_roots"});
  const auto* info = members.find({"info"});
  if (roots != nullptr && roots->is_array() && !roots->empty()) {
    folder = hook_text(roots->front());
  } else if (info != nullptr && info->is_object()) {
    folder = Members(*info).text({"directory"});
  }
  return folder.size() <= label_bytes_max ? folder : std::string();
}

/// The conversation that an event belongs to, as the agent calls it.
std::string own_session(const Members& members) {
  auto own = members.text({"session_id", "conversation_id", "thread-id", "sessionID", "sessionId"});
  if (const auto* info = members.find({"info"});
      own.empty() && info != nullptr && info->is_object())
    own = Members(*info).text({"id"});
  // A subagent of Copilot CLI names itself as the session, and its parent beside.
  if (auto parent = members.text({"parent_agent_id"});
      !parent.empty() && own == members.text({"agent_id"}))
    own = std::move(parent);
  return own;
}

}  // namespace

Result<HookEvent> hook_event(HookAgent agent, std::string_view body, const std::string& session,
                             WallTime now, std::string_view named) {
  if (auto checked = check_json(body); !checked) return checked.error();
  auto parsed = json::parse(body, nullptr, false);
  if (!parsed.is_object())
    return Error{ErrorCode::malformed, "a hook's event must be a JSON object"};
  if (agent == HookAgent::copilot_cli) give_usual_names(parsed);
  auto name = Members(parsed).word({"hook_event_name", "type"}, word_bytes_max / 2);
  if (name.empty() && row_of(named) != nullptr) name = named;
  if (name.empty()) name = Members(parsed).word({"hookName"}, word_bytes_max / 2);
  if (name.empty()) return missing("hook_event_name", "which event is it?");
  auto meaning = meaning_of(agent, name);
  const Members members(members_in(parsed));
  const bool is_helper = ends_own_helper(meaning, members);
  if (is_helper) meaning = Meaning::nothing;

  HookEvent event;
  event.name = name;
  event.session = session;
  if (session.empty()) event.session = as_session_id(own_session(members));
  if (event.session.empty() && meaning == Meaning::nothing) return event;  // of the whole program
  if (event.session.empty()) return missing("session_id", "whose event is it?");

  event.spec.agent = name_of(agent);
  if (agent == HookAgent::generic)
    if (auto own = members.word({"agent"}, label_bytes_max); !own.empty())
      event.spec.agent = std::move(own);
  if (const auto* info = members.find({"info"}); info != nullptr && info->is_object()) {
    auto parent = as_session_id(Members(*info).text({"parentID"}));  // an opencode subagent's
    if (session.empty() && parent != event.session) event.spec.parent = std::move(parent);
  }
  event.resumes = meaning == Meaning::begin && members.text({"source"}) == "resume";
  event.transcript = members.text({"transcript_path"});
  event.spec.labels["via"] = name == "agent-turn-complete" ? "notify" : "hooks";
  const auto subagent = is_helper ? std::string() : members.text({"agent_id", "subagent_id"});
  if (!subagent.empty()) {
    event.spec.parent = event.session;
    event.session = as_session_id(event.session + ":" + subagent);
    if (auto type = members.word({"agent_type", "subagent_type"}, word_bytes_max); !type.empty())
      event.spec.agent = std::move(type);
  }
  if (auto model = members.word({"model"}, label_bytes_max); !model.empty())
    event.spec.labels["model"] = std::move(model);
  if (auto folder = folder_in(parsed, members); !folder.empty())
    event.spec.labels["cwd"] = std::move(folder);

  const bool is_teammate = meaning == Meaning::rest && members.find({"teammate_name"}) != nullptr;
  const bool is_subagent = meaning == Meaning::sub_begin || meaning == Meaning::sub_end;
  const bool nameless_subagent = subagent.empty() && (is_subagent || is_teammate);
  // A session of another owner is begun and ended by that one.
  const bool not_ours = !session.empty() && subagent.empty() &&
                        (meaning == Meaning::begin || meaning == Meaning::finish);
  event.reports =
      reports_of(nameless_subagent || not_ours ? Meaning::other : meaning, name, members, now);
  if (meaning == Meaning::call && (agent == HookAgent::claude_code || agent == HookAgent::opencode))
    event.reports.front().deadline =
        own_limit(event.reports.front().name, members.find({"tool_input", "args"}));
  identify(event.reports, name, identity_of(meaning, members, body));
  if (meaning == Meaning::wait && members.find({"tool_input"}) != nullptr &&
      event.reports.front().call_id.empty())
    event.asks_for = call_report(Meaning::call, members);
  event.ends_subagents =
      subagent.empty() &&
      (meaning == Meaning::finish || std::ranges::any_of(event.reports, [](const Report& report) {
         return report.kind == ReportKind::idle && report.name == idle_reports::interrupted;
       }));
  return event;
}

}  // namespace watchdog::monitor
