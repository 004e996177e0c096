#include "cli/situation.h"

#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/phrases.h"

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
std::string doing(const json& process) {
  static const std::map<std::string, std::string, std::less<>> words = {
      {"R", "running"},
      {"S", "sleeping"},
      {"D", "waiting for a device"},
      {"I", "idle"},
      {"Z", "ended, unheeded"},
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
  auto text = "process " + shown(process, "pid") + " was " + doing(process) + ", after " +
              lasting_in(process, "cpuMs") + " of CPU time";
  const auto& children = member(process, "children");
  if (!children.is_array() || children.empty()) return text;
  return text + (children.size() == 1 ? "; its child " : "; its children ") +
         listed(children, [](const json& child) {
           return shown(child, "command") + " " + shown(child, "pid") + " " + doing(child);
         });
}

std::string pace_in_words(const json& pace) {
  const auto activity = shown(pace, "activity");
  auto text = (activity == "–" ? "its next change" : activity) + " took " +
              lasting_in(pace, "sinceMs") + " (usual " + lasting_in(pace, "usualMs") + ", slow " +
              lasting_in(pace, "slowMs");
  if (member(pace, "suspectMs").is_number()) text += ", suspect " + lasting_in(pace, "suspectMs");
  const auto& phi = member(pace, "phi");
  if (phi.is_number()) {
    std::array<char, 32> digits{};
    std::snprintf(digits.data(), digits.size(), "%.1f", phi.get<double>());
    text += std::string(", phi ") + digits.data();
  }
  return text + ")";
}

std::string bounds_in_words(const json& situation) {
  auto text = "silent from " + lasting_in(situation, "silenceMs") + " on";
  if (const auto& pace = member(situation, "pace"); pace.is_object())
    text += "; " + pace_in_words(pace);
  if (const auto& repeated = member(situation, "repeated"); repeated.is_object()) {
    text +=
        "; repeated by " + shown(repeated, "pattern") + " since event " + shown(repeated, "first");
  }
  return text;
}

}  // namespace

std::vector<std::string> situation_in_words(const json& situation) {
  if (!situation.is_object()) return {};
  const auto calls = listed(member(situation, "inFlight"), call_in_words);
  std::vector<std::string> lines{calls.empty() ? "no tool call was running" : "running: " + calls};
  if (const auto& process = member(situation, "process"); process.is_object())
    lines.push_back(process_in_words(process));
  lines.push_back("bounds: " + bounds_in_words(situation));
  return lines;
}

}  // namespace watchdog::monitor
