#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_names.h"
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

/// Open calls of sessions that report no turns, such as those of hooks: nothing ends such a call
/// alone.
Result<Table> other_calls(Endpoint& endpoint, const std::set<std::string>& with_turns,
                          int count_max) {
  Table table({"SESSION", "TITLE", "AGENT", "ELAPSED", "CALL"}, {1, 2}, Table::Last::wrapped);
  const auto body =
      endpoint.ask(Method::get, "/api/autonomous/sessions?lifecycle=running&limit=1000");
  if (!body) return body.error();
  const auto list = json::parse(*body);
  for (const auto& row : list["sessions"]) {
    const auto& tool = row["tool"];
    if (!tool.is_object() || with_turns.contains(shown(row, "sessionId"))) continue;
    if (count_max-- == 0) break;
    const auto elapsed =
        row.value("now", std::int64_t{0}) - tool.value("startedAt", std::int64_t{0});
    table.add({id_in(row), title_in(row), shown(row, "agent"),
               lasting(std::max<std::int64_t>(elapsed, 0)), call_in(tool)});
  }
  return table;
}

}  // namespace

static int turns(const TurnsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->ask(Method::get, "/api/turns/active?limit=" + std::to_string(options.limit));
  if (!body) return complain(body.error());
  Table table({"TURN", "SESSION", "TITLE", "AGENT", "ELAPSED", "CALLS", "TOOL"}, {2, 3},
              Table::Last::wrapped);
  const auto list = json::parse(*body);
  const auto names = options.json ? SessionNames() : SessionNames::read(*endpoint);
  if (!names) return complain(names.error());
  std::set<std::string> with_turns;
  for (const auto& turn : list["turns"]) {
    with_turns.insert(shown(turn, "sessionId"));
    if (options.json) {
      print_json(turn.dump());
    } else {
      const auto session = turn["sessionId"].get<std::string>();
      table.add({shown(turn, "turnId"), names->id_of(session), names->title_of(session),
                 shown(turn, "nousId"), lasting(turn["elapsedMs"]), shown(turn, "toolCallCount"),
                 doing(turn)});
    }
  }
  if (options.json) return exit_done;
  print(table.is_empty() ? "no running turns\n" : table.text(terminal_width()));
  const auto calls = other_calls(*endpoint, with_turns, options.limit);
  if (!calls) return complain(calls.error());
  if (calls->is_empty()) return exit_done;
  print("\n" + calls->text(terminal_width()));
  note(
      "These calls belong to no turn. A call ends with its agent: watchdog-monitor cancel SESSION "
      "--kill",
      false);
  return exit_done;
}

void add_turns(CommandLine& line) {
  const auto options = std::make_shared<TurnsOptions>();
  auto* command = line.app.add_subcommand(
      "turns", "List running turns, and calls of agents that report no turns");
  command->add_option("--limit", options->limit, "Largest number to show")
      ->capture_default_str()
      ->check(integer(1, 1'000));
  command->add_flag("--json", options->json, "Print one turn (JSON) per line");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = turns(*options); });
}

}  // namespace watchdog::monitor
