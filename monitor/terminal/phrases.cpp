// Makes lines of text from the monitor's JSON. Texts of agents pass `shown` or `terminal_line`, so
// no control character reaches the terminal. A member that an older monitor does not send is left
// out.
#include "terminal/phrases.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "api/page.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "text/time_left.h"
#include "watchdog/health.h"
#include "watchdog/report.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {

using nlohmann::json;

void print_fact(const char* name, const std::string& text) {
  std::string line = std::string("  ") + name;
  line.resize(std::max<std::size_t>(line.size(), 18), ' ');
  print_line(line + " " + text);
}

std::string shown(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "–";
  return found->is_string() ? terminal_line(found->get_ref<const std::string&>())
                            : terminal_json(found->dump());
}

std::string title_in(const json& document) {
  const auto title = shown(document, "title");
  const auto folder = shown(document, "directory");
  // Of a session without a prompt the title is its agent and its folder.
  if (folder == "–" || title.ends_with(" in " + folder)) return title;
  return folder + (title == "–" ? "" : ": " + title);
}

void print_identity(const json& document) {
  std::set<std::string> known{"–", shown(document, "sessionId")};
  const auto title = shown(document, "title");
  if (title != shown(document, "agent") && title != shown(document, "task") &&
      known.insert(title).second)
    print_fact("title", title);
  for (const auto& [name, field] : {std::pair{"folder", "directory"},
                                    {"agent", "agent"},
                                    {"task", "task"},
                                    {"parent", "parentSessionId"}}) {
    if (const auto text = shown(document, field); known.insert(text).second) print_fact(name, text);
  }
}

std::string call_in(const json& tool) {
  // An older server does not say the command.
  const auto command = shown(tool, "command");
  return shown(tool, "name") + (command == "–" ? "" : ": " + command);
}

std::string id_in(const json& row) {
  const bool is_short = isatty(STDOUT_FILENO) == 1 && row.contains("shortId");
  return shown(row, is_short ? "shortId" : "sessionId");
}

std::string lasting(std::int64_t ms) {
  if (ms >= 10'000) return spoken(Millis{ms});
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(ms) / 1'000);
  return text.data();
}

std::string ago(const json& milliseconds) {
  return milliseconds.is_number() ? spoken(Millis{milliseconds.get<std::int64_t>()}) + " ago" : "–";
}

std::string local_time(std::int64_t ms) {
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string counted_calls(std::int64_t count) {
  return std::to_string(count) + (count == 1 ? " call" : " calls");
}

std::string event_line(const json& event) {
  auto rest = event;
  for (const char* known : {"seq", "at_ms", "kind", "digest", "bytes"}) rest.erase(known);
  return shown(event, "seq") + "  " + local_time(event["at_ms"]) + "  " + shown(event, "kind") +
         "  " + terminal_json(rest.dump());
}

std::string condition_of(const json& document) {
  // An older monitor says the health only.
  return document["outcome"].is_object() ? document["outcome"].value("kind", "?")
                                         : document.value("state", document.value("health", "?"));
}

namespace {

/// `21:00`, with the date if it is not today. The moment is a whole minute.
std::string local_minute(WallTime moment) {
  const auto text = local_time(moment.time_since_epoch().count());
  const auto today = local_time(system_clock().wall().time_since_epoch().count());
  constexpr std::size_t date = 11, minute = 16;
  return text.substr(0, date) == today.substr(0, date) ? text.substr(date, minute - date)
                                                       : text.substr(0, minute);
}

std::string timely(const std::string& text) {
  return with_time_left(text, system_clock().wall(), local_minute);
}

/// `quota of anthropic until 21:00 (in 2 h 14 min)`
std::string wait_in_words(const json& document) {
  auto text = shown(document, "waitingFor");
  // An older monitor does not report the provider.
  if (const auto provider = shown(document, "waitProvider"); provider != "–")
    text += " of " + provider;
  if (const auto until = document.find("waitUntil"); until != document.end() && until->is_number())
    text += " until " + minute_of(WallTime{Millis{until->get<std::int64_t>()}});
  return timely(text);
}

}  // namespace

std::string reason_in(const json& document) {
  const auto reason = timely(shown(document, "reason"));
  // A row has its newest call; a document lists all of them, each with its command.
  const auto call = document.find("tool");
  if (call == document.end() || !call->is_object() || shown(*call, "command") == "–") return reason;
  const auto runs = "; running " + shown(*call, "name");
  if (reason.ends_with(runs)) return reason + ": " + shown(*call, "command");
  const auto state = document.value("state", "");
  const bool works = state == "starting" || state == "progressing" || state == "slow";
  return works ? reason + " (" + call_in(*call) + ")" : reason;
}

std::string explanation_in(const json& document) {
  const auto found = document.find("explainedBy");
  if (found == document.end() || !found->is_object()) return "";
  return "because its child " + shown(*found, "sessionId") + " is " +
         coloured(shown(*found, "health")) + ": " + reason_in(*found);
}

namespace {

/// An older server has none.
std::vector<std::string> notices_in(const json& document) {
  std::vector<std::string> notices;
  if (const auto text = shown(document, "unfinished"); text != "–")
    notices.push_back("unfinished: " + text);
  const auto group = document.find("groupWait");
  if (group != document.end() && group->is_object())
    notices.push_back(shown(*group, "text") + "; since " +
                      local_time(group->value("since", std::int64_t{0})));
  const auto child = document.find("silentChild");
  if (child != document.end() && child->is_object()) notices.push_back(shown(*child, "text"));
  return notices;
}

}  // namespace

void print_notices(const json& document) {
  for (const auto& notice : notices_in(document)) print_line("  " + notice);
}

std::string reason_and_notices_in(const json& row) {
  auto text = reason_in(row);
  for (const auto& notice : notices_in(row)) text += "; " + notice;
  return text;
}

std::vector<std::string> estimate_in(const json& document) {
  std::vector<std::string> texts;
  // An older server has none.
  const auto found = document.find("estimate");
  if (found == document.end() || !found->is_object()) return texts;
  for (const char* part : {"unfinished", "callsLeft"}) {
    const auto one = found->find(part);
    if (one != found->end() && one->is_object()) texts.push_back(shown(*one, "text"));
  }
  return texts;
}

namespace {

/// An older server does not report the state.
bool is_dead(const json& document) {
  return document.value("state", "") == "dead";
}

/// The state of its model server. An older monitor does not report it.
ServerNote server_note_in(const json& document) {
  ServerNote note;
  const auto server = document.find("server");
  if (server == document.end() || !server->is_object()) return note;
  const auto number = [&](const char* name) {
    const auto found = server->find(name);
    return found != server->end() && found->is_number_integer()
               ? std::optional(found->get<std::int64_t>())
               : std::nullopt;
  };
  note.evidence.state = named<ServerState>(shown(*server, "state")).value_or(ServerState::unknown);
  note.evidence.done = number("done").value_or(0);
  note.evidence.total = number("total").value_or(0);
  if (const auto left = number("leftMs")) note.evidence.left = Millis{*left};
  note.evidence = bounded(note.evidence);
  if (const auto why = shown(*server, "why"); why != "–") note.why = why;
  return note;
}

}  // namespace

std::string server_in(const json& document) {
  return server_in_words(server_note_in(document));
}

std::string server_brief_in(const json& document) {
  return server_in_brief(server_note_in(document).evidence);
}

std::string lifecycle_in(const json& document) {
  return (is_dead(document) ? "its process is gone" : shown(document, "lifecycle")) + ", attempt " +
         shown(document, "attempt");
}

std::string sources_in(const json& document, WallTime now) {
  std::string text;
  // An older monitor does not report sources.
  for (const auto& source : document.value("sources", json::array())) {
    auto name = shown(source, "source");
    if (name == name_of(ReportOrigin::monitor)) continue;
    if (name == name_of(ReportOrigin::unknown)) name = "not recorded";
    if (name == name_of(ReportOrigin::otlp)) name = "OpenTelemetry";
    if (name == name_of(ReportOrigin::mcp)) name = "MCP";
    const auto age = now.time_since_epoch().count() - source.value("lastAt", std::int64_t{0});
    text += (text.empty() ? "" : ", ") + name + " " + ago(std::max<std::int64_t>(age, 0));
  }
  return text;
}

void print_pending(const json& document) {
  if (const auto server = server_in(document); !server.empty()) print_fact("model server", server);
  // An older server does not report turns.
  for (const auto& turn : document.value("turns", json::array())) {
    print_fact("turn", shown(turn, "turnId") + " for " +
                           spoken(Millis{turn["elapsedMs"].get<std::int64_t>()}) + ", " +
                           counted_calls(turn["toolCallCount"]) +
                           (turn.value("aborting", false) ? ", asked to stop" : ""));
  }
  // The newest call is the one for which it asks.
  const bool asks = shown(document, "waitingFor") == wait_reports::approval;
  std::size_t left = document["tools"].size();
  for (const auto& tool : document["tools"]) {
    const bool is_asked = asks && --left == 0;
    const auto said = shown(tool, "message");
    const auto id = shown(tool, "callId");
    const auto call = call_in(tool) + " for " +
                      spoken(Millis{tool["elapsedMs"].get<std::int64_t>()}) +
                      (id == "–" ? "" : " (call " + id + ")");
    print_fact(is_dead(document) ? "left open"
               : is_asked        ? "asks for"
                                 : "running",
               call + (said == "–" ? "" : ": " + said));
  }
  if (shown(document, "waitingFor") != "–") print_fact("waits for", wait_in_words(document));
  if (const auto& cancel = document["cancel"]; cancel.is_object())
    print_fact("cancel asked by",
               shown(cancel, "by") +
                   (cancel.value("reason", "").empty() ? "" : ": " + shown(cancel, "reason")));
}

}  // namespace watchdog::monitor
