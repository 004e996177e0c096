#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct StatusOptions {
  Endpoint::Options endpoint;
  SessionChoice session;
  bool json = false;
};

/// Returns a text on the heartbeats of a session that sent some and has not ended.
std::string heartbeats_now(const json& document) {
  const bool ended = document["outcome"].is_object();
  if (ended || document["progress"]["heartbeats"] == 0) return "";
  return document["alive"] == true ? ", still coming" : ", none recently";
}

/// Calls that a loop repeated are state changes that brought nothing.
std::string wasted_in(const json& document) {
  const auto wasted = shown(document, "wastedCalls");
  return wasted == "–" ? "" : " (" + wasted + " calls without anything new)";
}

}  // namespace

static int status(const StatusOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto session = session_of(*endpoint, options.session);
  if (!session) return complain(session.error());
  const auto body = endpoint->ask(Method::get, "/api/autonomous/progress/" + url_encoded(*session));
  if (!body) return complain(body.error());
  if (options.json) {
    print_json(*body);
    return exit_done;
  }
  const auto document = json::parse(*body);
  const auto& progress = document["progress"];
  print_line(*session + "  " + coloured(condition_of(document)) + "  " + reason_in(document));
  if (const auto because = explanation_in(document); !because.empty()) print_line("  " + because);
  print_notices(document);
  print_identity(document);
  print_fact("attention", shown(document, "attention"));
  print_fact("lifecycle", lifecycle_in(document));
  if (!document["currentPhase"].is_null() || !document["iteration"].is_null())
    print_fact("phase",
               shown(document, "currentPhase") + ", iteration " + shown(document, "iteration"));
  print_fact("state changes",
             shown(progress, "stateChanges") + wasted_in(document) +
                 (progress["lastChangeAgo"].is_null() ? ""
                                                      : ", last " + shown(progress, "lastChange") +
                                                            " " + ago(progress["lastChangeAgo"])));
  print_fact("heartbeats", shown(progress, "heartbeats") + heartbeats_now(document));
  if (const auto sources = sources_in(document, system_clock().wall()); !sources.empty())
    print_fact("heard from", sources);
  for (const auto& proof : document["evidence"]) {
    print_fact("evidence", "event " + shown(proof, "seq") + ": " + shown(proof, "note"));
  }
  for (const auto& line : estimate_in(document)) print_fact("estimate", line);
  print_pending(document);
  return exit_done;
}

void add_status(CommandLine& line) {
  const auto options = std::make_shared<StatusOptions>();
  auto* command = line.app.add_subcommand("status", "Show one session: its health, and why");
  add_session(*command, options->session);
  command->add_flag("--json", options->json, "Print the progress document as JSON");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    need_session(options->session);
    line.code = status(*options);
  });
}

}  // namespace watchdog::monitor
