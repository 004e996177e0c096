#include "terminal/situation.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "terminal/phrases.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t listed_max = 4;

/// A member; null where there is none. Files may come from anybody.
const json& member(const json& object, const char* name) {
  static const json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string lasting_in(const json& object, const char* name) {
  const auto& ms = member(object, name);
  return ms.is_number_integer() ? lasting(ms.get<std::int64_t>()) : "–";
}

/// The first few as `phrase` says them, and how many more there are.
template <class Phrase>
std::string listed(const json& list, Phrase phrase) {
  std::string text;
  std::size_t at = 0;
  for (const auto& item : list) {
    if (at++ == listed_max) {
      text += " and " + std::to_string(list.size() - listed_max) + " more";
      break;
    }
    text += (text.empty() ? "" : ", ") + phrase(item);
  }
  return text;
}

std::string call_in_words(const json& call) {
  auto text = shown(call, "name") + " for " + lasting_in(call, "ageMs");
  if (member(call, "deadlineMs").is_number())
    text += " of at most " + lasting_in(call, "deadlineMs");
  return text;
}

/// `sleeping in do_wait`
std::string process_doing(const json& process) {
  static const std::map<std::string, std::string, std::less<>> words = {
      {"R", "running"},
      {"S", "sleeping"},
      {"D", "waiting for a device"},
      {"I", "idle"},
      {"Z", "zombie (not reaped by its parent)"},
      {"T", "stopped"},
      {"t", "traced"},
      {"X", "ended"}};
  const auto state = shown(process, "state");
  const auto word = words.find(state);
  auto text = word == words.end() ? "in state " + state : word->second;
  if (const auto place = shown(process, "wchan"); place != "–") text += " in " + place;
  return text;
}

std::string process_in_words(const json& process) {
  auto text = "process " + shown(process, "pid") + " was " + process_doing(process) + ", after " +
              lasting_in(process, "cpuMs") + " of CPU time";
  const auto& children = member(process, "children");
  if (!children.is_array() || children.empty()) return text;
  return text + (children.size() == 1 ? "; its child " : "; its children ") +
         listed(children, [](const json& child) {
           return shown(child, "command") + " " + shown(child, "pid") + " " + process_doing(child);
         });
}

/// `pace of execution: 12 s; typically 30 s, slow after 10 min, suspect after 35 min`
std::string pace_in_words(const json& pace) {
  const auto activity = shown(pace, "activity");
  auto text = "pace of " + (activity == "–" ? "the next change" : activity) + ": " +
              lasting_in(pace, "sinceMs") + "; ";
  if (member(pace, "usualMs").is_number())
    text += "typically " + lasting_in(pace, "usualMs") + ", ";
  text += "slow after " + lasting_in(pace, "slowMs");
  if (member(pace, "suspectMs").is_number())
    text += ", suspect after " + lasting_in(pace, "suspectMs");
  return text;
}

}  // namespace

std::vector<std::string> situation_in_words(const json& situation) {
  if (!situation.is_object()) return {};
  const auto calls = listed(member(situation, "inFlight"), call_in_words);
  std::vector<std::string> lines{calls.empty() ? "no tool call was running" : "running: " + calls};
  if (const auto& process = member(situation, "process"); process.is_object())
    lines.push_back(process_in_words(process));
  lines.push_back("silent after " + lasting_in(situation, "silenceMs") + " without a heartbeat");
  if (const auto& pace = member(situation, "pace"); pace.is_object())
    lines.push_back(pace_in_words(pace));
  if (const auto& repeated = member(situation, "repeated"); repeated.is_object()) {
    lines.push_back("repetition (" + shown(repeated, "pattern") + ") since event " +
                    shown(repeated, "first"));
  }
  return lines;
}

std::string situation_line(const json& document) try {
  if (!document.is_object() || !document.contains("outcome")) return "nothing is known of it";
  auto line = condition_of(document) + " (" + reason_in(document) + ")";
  if (const auto because = explanation_in(document); !because.empty()) line += " " + because;
  if (const auto iteration = shown(document, "iteration"); iteration != "–")
    line += "; iteration " + iteration;
  if (const auto phase = shown(document, "currentPhase"); phase != "–") line += " in " + phase;
  if (const auto server = server_brief_in(document); !server.empty())
    line += "; model server " + server;
  if (document.contains("progress")) {
    const auto& progress = document["progress"];
    line += "; " + shown(progress, "stateChanges") + " state changes, " +
            shown(progress, "heartbeats") + " heartbeats";
  }
  return line;
} catch (const json::exception&) {
  return "nothing is known of it";
}

}  // namespace watchdog::monitor
