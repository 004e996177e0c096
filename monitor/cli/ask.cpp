#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/table.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

/// What a turn does: `shell for 12 s, asked to stop`.
std::string doing(const json& turn) {
  auto text = shown(turn, "currentTool");
  const auto& elapsed = turn["currentToolElapsedMs"];
  if (elapsed.is_number()) text += " for " + lasting(elapsed);
  if (turn.value("aborting", false)) text += ", asked to stop";
  return text;
}

std::string target_of(const CancelOptions& options) {
  if (options.turn.empty()) {
    return "/api/autonomous/sessions/" + url_encoded(options.session) + "/cancel";
  }
  const auto turn = "/api/turns/" + url_encoded(options.turn);
  return options.call.empty() ? turn + "/abort" : turn + "/abort-tool/" + url_encoded(options.call);
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
  if (const auto because = explanation_in(document); !because.empty()) print_line("  " + because);
  for (const auto& [name, field] :
       {std::pair{"agent", "agent"}, {"task", "task"}, {"parent", "parentSessionId"}}) {
    if (const auto text = shown(document, field); text != "–") print_fact(name, text);
  }
  print_fact("lifecycle", shown(document, "lifecycle") + ", attempt " + shown(document, "attempt"));
  print_fact("phase",
             shown(document, "currentPhase") + ", iteration " + shown(document, "iteration"));
  print_fact("state changes", shown(progress, "stateChanges") + ", last " +
                                  shown(progress, "lastChange") + " " +
                                  ago(progress["lastChangeAgo"]));
  print_fact("heartbeats", shown(progress, "heartbeats") +
                               (document["alive"].get<bool>() ? ", alive" : ", not alive"));
  for (const auto& proof : document["evidence"]) {
    print_fact("evidence", "event " + shown(proof, "seq") + ": " + shown(proof, "note"));
  }
  print_pending(document);
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

int turns(const TurnsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->ask(Method::get, "/api/turns/active?limit=" + std::to_string(options.limit));
  if (!body) return complain(body.error());
  Table table({"TURN", "SESSION", "AGENT", "ELAPSED", "CALLS", "TOOL"});
  const auto list = json::parse(*body);
  for (const auto& turn : list["turns"]) {
    if (options.json) {
      print_line(turn.dump());
    } else {
      table.add({shown(turn, "turnId"), shown(turn, "sessionId"), shown(turn, "nousId"),
                 lasting(turn["elapsedMs"]), shown(turn, "toolCallCount"), doing(turn)});
    }
  }
  if (!options.json) print(table.text(terminal_width()));
  return exit_done;
}

int cancel(const CancelOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = true;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->ask(Method::post, target_of(options), json{{"reason", options.reason}}.dump());
  if (!body) return complain(body.error());
  if (options.json) {
    print_line(*body);
  } else if (!options.turn.empty()) {
    print_line("asked to stop");
  } else if (json::parse(*body).value("ended", false)) {
    print_line("cancelled; no process was serving it");
  } else {
    print_line("asked to stop; the agent hears it with its next report");
  }
  return exit_done;
}

}  // namespace watchdog::monitor
