#include <poll.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr int look_again_ms = 250;

/// The letters of a check, in words.
std::string meaning(const std::string& letter) {
  if (letter == "A") return "it makes progress";
  if (letter == "B") return "it is stuck in a loop";
  if (letter == "C") return "it is blocked";
  return letter == "D" ? "it has failed" : "no answer";
}

}  // namespace

int check(const CheckOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto body = endpoint->ask(Method::post, "/api/autonomous/check-status",
                            json{{"sessionId", options.session}}.dump());
  if (!body) return complain(body.error());
  auto asked = json::parse(*body);
  const std::string id = asked["checkId"];
  while (!options.no_wait && asked["state"] == "pending") {
    poll(nullptr, 0, look_again_ms);
    body = endpoint->ask(Method::get, "/api/autonomous/check-status/" + url_encoded(id));
    if (!body) return complain(body.error());
    asked = json::parse(*body);
  }
  const std::string state = asked["state"];
  if (options.json) {
    print_line(*body);
  } else {
    auto line = id + "  " + state;
    if (state == "done") line += ": " + meaning(asked["status"]);
    if (asked["confidence"].is_number()) {
      line += ", " +
              std::to_string(static_cast<int>(100 * asked["confidence"].get<double>() + 0.5)) +
              " % sure";
    }
    print_line(line);
    if (asked["reason"].is_string()) print_line("  " + printable(asked["reason"]));
  }
  return state == "failed" ? exit_failed : exit_done;
}

}  // namespace watchdog::monitor
