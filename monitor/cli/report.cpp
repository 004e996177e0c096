// Runs that are compared report events of the kind `limit`. `began` opens an attempt and replaces
// the earlier one; each further event is an old limit that the run passed. A session without
// `began` was never compared and is left out. The agent notices a limit at its next look, so the
// time over the limit is taken off again. The old limits would have killed a run that passed any of
// them, and wrongly so if it completed.
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct ReportOptions {
  Endpoint::Options endpoint;
  std::string agent;  ///< Empty: of all.
  bool json = false;
};

using nlohmann::json;

/// A run that was compared with the old limits, or ran under them.
struct Compared {
  std::string session;
  bool enforced = false;
  json limits = json::array();  ///< Those passed: name, value, how long the run had run by then.
  std::string ended;            ///< How; empty: it runs still.
  std::int64_t began_ms = 0;
  std::int64_t lasted_ms = 0;  ///< So far, where it runs still.

  [[nodiscard]] bool killed() const { return !limits.empty(); }
  [[nodiscard]] bool completed() const { return ended == "completed"; }

  [[nodiscard]] json to_json() const {
    return {{"sessionId", session},
            {"enforced", enforced},
            {"limits", limits},
            {"outcome", ended.empty() ? json() : json(ended)},
            {"lastedMs", lasted_ms}};
  }
};

/// The run whose limits an event speaks of: a later `began` is a later attempt.
void fold(Compared& run, bool& compared, const json& event) {
  const auto at = event.value("at_ms", std::int64_t{0});
  const auto name = event.value("limit", std::string());
  if (name == "began") {
    compared = true;
    run.enforced = event.value("enforced", false);
    run.limits.clear();
    run.began_ms = at;
    return;
  }
  if (!compared) return;
  const auto value = event.value("limit_value", std::int64_t{0});
  const auto reached = event.value("reached", std::int64_t{0});
  // Noticed late, because no look was in between.
  const auto late = name == "health_attempts" ? 0 : std::max<std::int64_t>(reached - value, 0);
  run.limits.push_back({{"limit", name},
                        {"value", value},
                        {"reached", reached},
                        {"afterMs", std::max<std::int64_t>(at - run.began_ms - late, 0)}});
}

/// Null: the session was never compared.
Result<std::optional<Compared>> compared(Endpoint& endpoint, const json& document) {
  Compared run{.session = document.value("sessionId", std::string())};
  bool found = false;
  auto until = system_clock().wall().time_since_epoch().count();
  for (std::string after = "0"; !after.empty();) {
    const auto body =
        endpoint.ask(Method::get, "/api/autonomous/sessions/" + url_encoded(run.session) +
                                      "/events?kind=limit&limit=1000&after=" + after);
    if (!body) return body.error();
    const auto page = json::parse(*body);
    for (const auto& event : page["events"]) fold(run, found, event);
    after = page["next"].is_null() ? "" : page["next"].dump();
  }
  if (!found) return std::optional<Compared>{};
  if (const auto& outcome = document["outcome"]; outcome.is_object()) {
    run.ended = outcome.value("kind", std::string());
    until = outcome.value("at", until);
  }
  run.lasted_ms = std::max<std::int64_t>(until - run.began_ms, 0);
  return std::optional(std::move(run));
}

std::string first_limit(const Compared& run) {
  if (!run.killed()) return "–";
  const auto& limit = run.limits.front();
  const auto name = limit.value("limit", std::string());
  const auto value = limit.value("value", std::int64_t{0});
  const auto most = name == "health_attempts" ? std::to_string(value) + " tries" : lasting(value);
  return terminal_line(name) + " " + most + ", after " +
         lasting(limit.value("afterMs", std::int64_t{0}));
}

/// The runs that the old limits would have ended, and those of them that finished.
struct Totals {
  std::size_t killed = 0;
  std::size_t completed = 0;
  explicit Totals(const std::vector<Compared>& runs) {
    for (const auto& run : runs) {
      killed += run.killed() ? 1 : 0;
      completed += run.killed() && run.completed() ? 1 : 0;
    }
  }
};

void print_runs(const std::vector<Compared>& runs) {
  if (runs.empty()) {
    print_line(
        "No run was compared with the old limits. Set AUTONOMOUS_STATUS_BASED_TIMEOUT=compare "
        "where "
        "agents run.");
    return;
  }
  const Totals totals(runs);
  print_line("The old limits would have killed " + std::to_string(totals.killed) + " of " +
             std::to_string(runs.size()) + " runs, " + std::to_string(totals.completed) +
             " of which finished.");
  Table table({"SESSION", "OLD LIMIT", "ENDED", "LASTED"});
  for (const auto& run : runs) {
    table.add({terminal_line(run.session), first_limit(run),
               run.ended.empty() ? "runs still" : run.ended, lasting(run.lasted_ms)});
  }
  print(table.text(terminal_width()));
}

}  // namespace

static int report(const ReportOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  std::vector<Compared> runs;
  for (std::string after;;) {
    std::string target = "/api/autonomous/progress?limit=1000" + after;
    if (!options.agent.empty()) target += "&agent=" + url_encoded(options.agent);
    const auto body = endpoint->ask(Method::get, target);
    if (!body) return complain(body.error());
    const auto list = json::parse(*body);
    for (const auto& document : list["sessions"]) {
      auto run = compared(*endpoint, document);
      if (!run) return complain(run.error());
      if (*run) runs.push_back(std::move(**run));
    }
    if (list["next"].is_null()) break;
    after = "&after=" + list["next"].dump();
  }
  if (!options.json) {
    print_runs(runs);
    return exit_done;
  }
  const Totals totals(runs);
  json all = json::array();
  for (const auto& run : runs) all.push_back(run.to_json());
  print_json(json{
      {"runs", runs.size()},
      {"killed", totals.killed},
      {"killedButCompleted", totals.completed},
      {"sessions",
       all}}.dump());
  return exit_done;
}

void add_report(CommandLine& line) {
  const auto options = std::make_shared<ReportOptions>();
  auto* command =
      line.app.add_subcommand("report", "Show what the old time limits would have cost");
  command->add_option("--agent", options->agent, "Only sessions of this agent");
  command->add_flag("--json", options->json, "Print one JSON object");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = report(*options); });
}

}  // namespace watchdog::monitor
