#include <cmath>
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

/// `12 of 30 (25 to 58 %)`; `–`: no trial ended.
std::string arm_text(const json& arm) {
  const auto percent = [&](const char* name) {
    return std::to_string(std::lround(arm.value(name, 0.0) * 100));
  };
  if (arm.value("of", 0) == 0) return "–";
  return shown(arm, "recovered") + " of " + shown(arm, "of") + " (" + percent("low") + " to " +
         percent("high") + " %)";
}

void print_trials(const json& recovery) {
  Table table({"RULE", "AGENT", "RECOVERED AFTER AN ACT", "WITHOUT ONE", "OPEN"});
  std::vector<std::string> off;
  bool are_compared = false;
  for (const auto& rule : recovery["rules"]) {
    const auto name = shown(rule, "name");
    if (rule.value("off", false)) off.push_back(name);
    const auto open = shown(rule, "openTrials");
    if (rule["trials"].empty()) table.add({name, "–", "–", "–", open});
    for (const auto& trials : rule["trials"]) {
      are_compared = are_compared || trials["heldOut"].value("of", 0) > 0;
      table.add({name, shown(trials, "agent"), arm_text(trials["acted"]),
                 arm_text(trials["heldOut"]), open});
    }
  }
  if (recovery["rules"].empty()) return print_line("no rules");
  print(table.text(terminal_width()));
  if (!are_compared)
    print_line(
        "Nothing was held out, so nobody knows how many recover without an act: set hold_out");
  for (const auto& rule : off)
    print_line("Rule " + rule + " is off: with it fewer sessions recovered. `watchdog-monitor " +
               "recovery resume` lets it act again");
}

int recovery(const RecoveryOptions& options) {
  auto endpoint_options = options.endpoint;
  const bool is_report = options.action == "report";
  endpoint_options.writes = options.action != "status" && !is_report;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto body = endpoint_options.writes
                        ? endpoint->act(Method::post, "/api/recovery/" + options.action)
                        : endpoint->ask(Method::get, "/api/recovery");
  if (!body) return complain(body.error());
  if (options.json) {
    print_json(*body);
  } else {
    is_report ? print_trials(json::parse(*body)) : print_rules(json::parse(*body));
  }
  return exit_done;
}

}  // namespace

void add_recovery(CommandLine& line) {
  const auto options = std::make_shared<RecoveryOptions>();
  auto* command = line.app.add_subcommand(
      "recovery", "Show the rules that act on agents, and whether they help; pause or resume them");
  command
      ->add_option(
          "action", options->action,
          "status: show the rules and their acts since the monitor started. report: show how "
          "many sessions recovered after an act and without one. pause: stop all rules, "
          "also after a restart. resume: let them act again")
      ->capture_default_str()
      ->check(one_of("action", {"status", "report", "pause", "resume"}));
  command->add_flag("--json", options->json, "Print the answer as JSON");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    line.code = with_settings(options->endpoint.sources, [&] { return recovery(*options); });
  });
}

}  // namespace watchdog::monitor
