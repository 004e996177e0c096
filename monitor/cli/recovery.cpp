#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

struct RecoveryOptions {
  Endpoint::Options endpoint;
  std::string action = "status";
  bool json = false;
};

/// The states that a rule acts on: `looping, stuck`.
std::string states_of(const json& rule) {
  std::string text;
  for (const auto& state : rule["on"])
    if (state.is_string()) text += (text.empty() ? "" : ", ") + state.get<std::string>();
  return text;
}

void print_rules(const json& recovery) {
  const bool is_paused = recovery.value("paused", false);
  if (recovery["rules"].empty()) {
    print_line(std::string("no rules") + (is_paused ? "; paused" : ""));
    return;
  }
  print_line(is_paused ? "paused: no rule acts until `watchdog-monitor recovery resume`"
                       : "not paused");
  Table table({"RULE", "ON", "STEP", "AT MOST", "AGENT", "LABEL", "DRY RUN", "ACTS"});
  for (const auto& rule : recovery["rules"]) {
    table.add({shown(rule, "name"), states_of(rule), shown(rule, "step"), shown(rule, "atMost"),
               shown(rule, "agent"), shown(rule, "label"),
               rule.value("dryRun", false) ? "yes" : "no", shown(rule, "acts")});
  }
  print(table.text(terminal_width()));
}

int recovery(const RecoveryOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = options.action != "status";
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto body = endpoint_options.writes
                        ? endpoint->act(Method::post, "/api/recovery/" + options.action)
                        : endpoint->ask(Method::get, "/api/recovery");
  if (!body) return complain(body.error());
  options.json ? print_json(*body) : print_rules(json::parse(*body));
  return exit_done;
}

}  // namespace

void add_recovery(CommandLine& line) {
  const auto options = std::make_shared<RecoveryOptions>();
  auto* command = line.app.add_subcommand(
      "recovery", "Show the rules that act on looping agents; pause or resume them");
  command
      ->add_option("action", options->action,
                   "status: show the rules and their acts since the monitor started; pause: stop "
                   "all of them, also after a restart; resume: let them act again")
      ->capture_default_str()
      ->check(one_of("action", {"status", "pause", "resume"}));
  command->add_flag("--json", options->json, "Print the answer as JSON");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    line.code = with_settings(options->endpoint.sources, [&] { return recovery(*options); });
  });
}

}  // namespace watchdog::monitor
