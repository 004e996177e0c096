#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "api/page.h"
#include "cli/commands.h"
#include "cli/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}
void print_line(const std::string& text) {
  print(text + "\n");
}

/// A field's text for people; `–` where it is null or missing.
std::string shown(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) return "–";
  return found->is_string() ? printable(found->get<std::string>()) : found->dump();
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

/// How it ended, or how it is.
std::string condition_of(const json& document) {
  return document["outcome"].is_object() ? document["outcome"].value("kind", "?")
                                         : document.value("health", "?");
}

std::string reason_in(const json& document) {
  if (!document["outcome"].is_object()) return shown(document, "reason");
  const auto error = shown(document["outcome"], "error");
  return shown(document["outcome"], "reason") + (error == "–" ? "" : ": " + error);
}

}  // namespace

int status(const StatusOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->ask(Method::get, "/api/autonomous/progress/" + url_encoded(options.session));
  if (!body) return complain(body.error());
  if (options.json) {
    print_line(*body);
    return exit_done;
  }
  const auto document = json::parse(*body);
  const auto& progress = document["progress"];
  print_line(options.session + "  " + coloured(condition_of(document)) + "  " +
             reason_in(document));
  const auto line = [](const char* name, const std::string& text) {
    std::printf("  %-16s %s\n", name, text.c_str());
  };
  for (const auto& [name, field] :
       {std::pair{"agent", "agent"}, {"task", "task"}, {"parent", "parentSessionId"}}) {
    if (const auto text = shown(document, field); text != "–") line(name, text);
  }
  line("lifecycle", shown(document, "lifecycle") + ", attempt " + shown(document, "attempt"));
  line("phase", shown(document, "currentPhase") + ", iteration " + shown(document, "iteration"));
  line("state changes", shown(progress, "stateChanges") + ", last " +
                            shown(progress, "lastChange") + " " + ago(progress["lastChangeAgo"]));
  line("heartbeats",
       shown(progress, "heartbeats") + (document["alive"].get<bool>() ? ", alive" : ", not alive"));
  for (const auto& tool : document["tools"]) {
    line("running",
         shown(tool, "name") + " for " + spoken(Millis{tool["elapsedMs"].get<std::int64_t>()}));
  }
  for (const auto& proof : document["evidence"]) {
    line("evidence", "event " + shown(proof, "seq") + ": " + shown(proof, "note"));
  }
  if (document.contains("cancel"))
    line("cancel asked by",
         shown(document["cancel"], "by") + ": " + shown(document["cancel"], "reason"));
  return exit_done;
}

int sessions(const SessionsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  Table table({"SESSION", "HEALTH", "AGENT", "ITERATION", "CHANGES", "LAST CHANGE", "WHY"});
  std::string after;
  for (int left = options.limit; left > 0;) {
    std::string target =
        "/api/autonomous/progress?limit=" + std::to_string(std::min(left, 1'000)) + after;
    for (const auto& [name, value] :
         {std::pair<const char*, const std::string&>{"health", options.health},
          {"lifecycle", options.lifecycle},
          {"agent", options.agent},
          {"label", options.label},
          {"parent", options.parent},
          {"q", options.text}}) {
      if (!value.empty()) target += std::string("&") + name + "=" + url_encoded(value);
    }
    const auto body = endpoint->ask(Method::get, target);
    if (!body) return complain(body.error());
    const auto list = json::parse(*body);
    for (const auto& document : list["sessions"]) {
      if (options.json) {
        print_line(document.dump());
      } else {
        table.add({document.value("sessionId", "?"), coloured(condition_of(document)),
                   shown(document, "agent"), shown(document, "iteration"),
                   shown(document["progress"], "stateChanges"),
                   ago(document["progress"]["lastChangeAgo"]), reason_in(document)});
      }
    }
    left -= static_cast<int>(list["sessions"].size());
    if (list["next"].is_null()) break;
    after = "&after=" + list["next"].dump();
  }
  if (!options.json) print(table.text(terminal_width()));
  return exit_done;
}

int events(const EventsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto after = std::to_string(options.after);
  for (std::int64_t left = options.all ? INT64_MAX : options.limit; left > 0;) {
    std::string target = "/api/autonomous/sessions/" + url_encoded(options.session) +
                         "/events?after=" + after +
                         "&limit=" + std::to_string(std::min<std::int64_t>(left, 1'000));
    if (!options.kind.empty()) target += "&kind=" + url_encoded(options.kind);
    const auto body = endpoint->ask(Method::get, target);
    if (!body) return complain(body.error());
    const auto page = json::parse(*body);
    for (const auto& event : page["events"]) {
      if (options.json) {
        print_line(event.dump());
        continue;
      }
      auto rest = event;
      for (const char* known : {"seq", "at_ms", "kind", "digest", "bytes"}) rest.erase(known);
      print_line(shown(event, "seq") + "  " + local_time(event["at_ms"]) + "  " +
                 shown(event, "kind") + "  " + printable(rest.dump(-1, ' ', false)));
    }
    left -= static_cast<std::int64_t>(page["events"].size());
    if (page["next"].is_null()) break;
    after = page["next"].dump();
  }
  return exit_done;
}

int cancel(const CancelOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = true;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto body = endpoint->ask(
      Method::post, "/api/autonomous/sessions/" + url_encoded(options.session) + "/cancel",
      json{{"reason", options.reason}, {"by", "user"}}.dump());
  if (!body) return complain(body.error());
  if (options.json) {
    print_line(*body);
  } else if (json::parse(*body).value("ended", false)) {
    print_line("cancelled; no process was serving it");
  } else {
    print_line("asked to stop; the agent hears it with its next report");
  }
  return exit_done;
}

}  // namespace watchdog::monitor
