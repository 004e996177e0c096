#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/agent_end.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct CancelOptions {
  Endpoint::Options endpoint;
  SessionChoice choice;  ///< It or a turn.
  std::string session;   ///< The id of the chosen one.
  std::string turn;
  std::string call;  ///< Only this one of the turn; empty: all of it.
  std::string reason;
  bool kill = false;          ///< End its process, too, if it is on this machine.
  bool dry_run = false;       ///< Only show what that would end.
  double grace_seconds = 10;  ///< For the agent to leave by itself before that.
  bool json = false;
};

std::string target_of(const CancelOptions& options) {
  if (options.turn.empty()) {
    return "/api/autonomous/sessions/" + url_encoded(options.session) + "/cancel";
  }
  const auto turn = "/api/turns/" + url_encoded(options.turn);
  return options.call.empty() ? turn + "/abort" : turn + "/abort-tool/" + url_encoded(options.call);
}

/// The session as a person knows it, after two spaces. Empty: it cannot be read.
std::string name_of_session(Endpoint& endpoint, const std::string& session) {
  const auto body = endpoint.ask(Method::get, "/api/autonomous/progress/" + url_encoded(session));
  return body ? "  " + title_in(json::parse(*body)) : "";
}

}  // namespace

static int cancel(CancelOptions options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = !options.dry_run;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  if (options.turn.empty()) {
    auto found = acted_on(*endpoint, options.choice);
    if (!found) return complain(found.error());
    options.session = std::move(*found);
  }
  const auto end = [&] {
    return AgentEnd(*endpoint, options.session,
                    {.server = options.endpoint.server, .json = options.json});
  };
  if (options.dry_run) return end().show();
  const auto body =
      endpoint->act(Method::post, target_of(options), json{{"reason", options.reason}}.dump());
  if (!body) return complain(body.error());
  if (options.json) {
    print_json(*body);
  } else if (!options.turn.empty()) {
    print_line("abort requested; the agent will see it with its next report");
  } else {
    const auto answer = json::parse(*body);
    if (options.session != options.choice.named)
      print_line("session " + options.session + name_of_session(*endpoint, options.session));
    print_line(answer.value("message", "cancel requested"));
  }
  if (!options.kill) return exit_done;
  return end().carry_out(
      std::chrono::milliseconds{static_cast<std::int64_t>(options.grace_seconds * 1'000)});
}

void add_cancel(CommandLine& line) {
  const auto options = std::make_shared<CancelOptions>();
  auto* command = line.app.add_subcommand(
      "cancel", "Ask an agent to stop its session, or only a turn or tool call");
  auto* cancelled_session = add_session(*command, options->choice);
  auto* cancelled_turn = command->add_option("--turn", options->turn, "Abort only this turn")
                             ->excludes(cancelled_session);
  command->add_option("--call", options->call, "Abort only this tool call of the turn")
      ->needs(cancelled_turn);
  command->add_option("--reason", options->reason, "Reason, which the agent gets");
  auto* kill_option =
      command
          ->add_flag(
              "--kill", options->kill,
              "End the agent's process and its descendants, too, if the monitor found the process "
              "itself or `run` started it, on this machine")
          ->excludes(cancelled_turn);
  command
      ->add_option("--grace", options->grace_seconds,
                   "Seconds for the agent to leave by itself before that")
      ->needs(kill_option)
      ->check(CLI::Range(0.0, 3'600.0))
      ->capture_default_str();
  command
      ->add_flag("--dry-run", options->dry_run,
                 "Only show which processes --kill would end; nothing is cancelled or ended")
      ->needs(kill_option);
  command->add_flag("--json", options->json, "Print the answer as JSON");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    if (options->turn.empty()) need_session(options->choice, "--turn");
    line.code = with_settings(options->endpoint.sources, [&] { return cancel(*options); });
  });
}

}  // namespace watchdog::monitor
