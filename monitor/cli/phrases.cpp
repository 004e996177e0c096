#include "cli/phrases.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "api/page.h"
#include "cli/table.h"

namespace watchdog::monitor {

using nlohmann::json;

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_line(const std::string& text) {
  print(text + "\n");
}

void print_fact(const char* name, const std::string& text) {
  std::printf("  %-16s %s\n", name, text.c_str());
}

std::string shown(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "–";
  return found->is_string() ? printable(found->get<std::string>()) : found->dump();
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
         "  " + printable(rest.dump(-1, ' ', false));
}

std::string condition_of(const json& document) {
  return document["outcome"].is_object() ? document["outcome"].value("kind", "?")
                                         : document.value("health", "?");
}

std::string reason_in(const json& document) {
  if (!document["outcome"].is_object()) return shown(document, "reason");
  const auto error = shown(document["outcome"], "error");
  return shown(document["outcome"], "reason") + (error == "–" ? "" : ": " + error);
}

std::string explanation_in(const json& document) {
  const auto found = document.find("explainedBy");
  if (found == document.end() || !found->is_object()) return "";
  return "because its child " + shown(*found, "sessionId") + " is " +
         coloured(shown(*found, "health")) + ": " + shown(*found, "reason");
}

void print_pending(const json& document) {
  // An older server does not tell of turns.
  for (const auto& turn : document.value("turns", json::array())) {
    print_fact("turn", shown(turn, "turnId") + " for " +
                           spoken(Millis{turn["elapsedMs"].get<std::int64_t>()}) + ", " +
                           counted_calls(turn["toolCallCount"]) +
                           (turn.value("aborting", false) ? ", asked to stop" : ""));
  }
  for (const auto& tool : document["tools"]) {
    const auto said = shown(tool, "message");
    print_fact("running", shown(tool, "name") + " for " +
                              spoken(Millis{tool["elapsedMs"].get<std::int64_t>()}) +
                              (said == "–" ? "" : ": " + said));
  }
  if (const auto awaited = shown(document, "waitingFor"); awaited != "–")
    print_fact("waits for", awaited);
  if (const auto& cancel = document["cancel"]; cancel.is_object())
    print_fact("cancel asked by", shown(cancel, "by") + ": " + shown(cancel, "reason"));
}

}  // namespace watchdog::monitor
