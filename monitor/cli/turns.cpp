#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct TurnsOptions {
  Endpoint::Options endpoint;
  int limit = 1'000;
  bool json = false;
};

/// Returns what a turn does: `shell for 12 s (call c1), asked to stop`.
std::string doing(const json& turn) {
  std::string text;
  for (const auto& tool : turn["tools"]) {
    text += (text.empty() ? "" : "; ") + shown(tool, "name") + " for " + lasting(tool["elapsedMs"]);
    if (const auto id = shown(tool, "callId"); id != "–") text += " (call " + id + ")";
  }
  if (text.empty()) text = "–";
  if (turn.value("aborting", false)) text += ", asked to stop";
  return text;
}

}  // namespace

static int turns(const TurnsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->ask(Method::get, "/api/turns/active?limit=" + std::to_string(options.limit));
  if (!body) return complain(body.error());
  Table table({"TURN", "SESSION", "AGENT", "ELAPSED", "CALLS", "TOOL"}, {2});
  const auto list = json::parse(*body);
  for (const auto& turn : list["turns"]) {
    if (options.json) {
      print_json(turn.dump());
    } else {
      table.add({shown(turn, "turnId"), shown(turn, "sessionId"), shown(turn, "nousId"),
                 lasting(turn["elapsedMs"]), shown(turn, "toolCallCount"), doing(turn)});
    }
  }
  if (!options.json) print(table.is_empty() ? "no running turns\n" : table.text(terminal_width()));
  return exit_done;
}

void add_turns(CommandLine& line) {
  const auto options = std::make_shared<TurnsOptions>();
  auto* command = line.app.add_subcommand("turns", "List running turns, newest session first");
  command->add_option("--limit", options->limit, "Largest number to show")
      ->capture_default_str()
      ->check(integer(1, 1'000));
  command->add_flag("--json", options->json, "Print one turn (JSON) per line");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = turns(*options); });
}

}  // namespace watchdog::monitor
