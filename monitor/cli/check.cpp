#include <poll.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

struct CheckOptions {
  Endpoint::Options endpoint;
  SessionChoice choice;
  std::string session;  ///< The id of the chosen one.
  bool no_wait = false;
  bool json = false;
};

using nlohmann::json;

constexpr int look_at_check_again_ms = 250;

/// The letters of a check, in words.
std::string meaning(const std::string& letter) {
  if (letter == "A") return "it makes progress";
  if (letter == "B") return "it is stuck in a loop";
  if (letter == "C") return "it is blocked";
  return letter == "D" ? "it has failed" : "no answer";
}

}  // namespace

static int check(CheckOptions options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto session = session_of(*endpoint, options.choice);
  if (!session) return complain(session.error());
  options.session = std::move(*session);
  auto body = endpoint->act(Method::post, "/api/autonomous/check-status",
                            json{{"sessionId", options.session}}.dump());
  if (!body) return complain(body.error());
  auto asked = json::parse(*body);
  const std::string id = asked["checkId"];
  while (!options.no_wait && asked["state"] == "pending") {
    poll(nullptr, 0, look_at_check_again_ms);
    body = endpoint->ask(Method::get, "/api/autonomous/check-status/" + url_encoded(id));
    if (!body) return complain(body.error());
    asked = json::parse(*body);
  }
  const std::string state = asked["state"];
  if (options.json) {
    print_json(*body);
  } else {
    auto line = id + "  " + state;
    if (state == "done") line += ": " + meaning(asked["status"]);
    if (asked["confidence"].is_number()) {
      line += ", " +
              std::to_string(static_cast<int>(100 * asked["confidence"].get<double>() + 0.5)) +
              " % sure";
    }
    print_line(line);
    if (asked["reason"].is_string()) print_line("  " + shown(asked, "reason"));
  }
  return state == "failed" ? exit_failed : exit_done;
}

void add_check(CommandLine& line) {
  const auto options = std::make_shared<CheckOptions>();
  auto* command = line.app.add_subcommand("check", "Ask a model whether a session makes progress");
  add_session(*command, options->choice);
  command->add_flag("--no-wait", options->no_wait,
                    "Do not wait for the answer, which becomes an event of the session");
  command->add_flag("--json", options->json, "Print the check as JSON");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    need_session(options->choice);
    line.code = check(*options);
  });
}

}  // namespace watchdog::monitor
