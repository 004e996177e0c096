#include <deque>
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

struct AuditOptions {
  Endpoint::Options endpoint;
  std::size_t limit = 100;  ///< Of the newest acts.
  bool all = false;
  bool json = false;
};

}  // namespace

using nlohmann::json;

static int audit(const AuditOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  std::deque<json> newest;
  std::size_t left_out = 0;
  for (json after = 0; !after.is_null();) {
    const auto body = endpoint->ask(Method::get, "/api/audit?limit=1000&after=" + after.dump());
    if (!body) return complain(body.error());
    auto page = json::parse(*body);
    for (auto& entry : page["audit"]) {
      newest.push_back(std::move(entry));
      if (options.all || newest.size() <= options.limit) continue;
      newest.pop_front();
      ++left_out;
    }
    after = page["next"];
  }
  Table table({"TIME", "WHO", "FROM", "DID", "OUTCOME", "TO"});
  for (const auto& entry : newest) {
    if (options.json) {
      print_json(entry.dump());
    } else {
      table.add({local_time(entry["at"]), shown(entry, "actor"), shown(entry, "peer"),
                 shown(entry, "action"), shown(entry, "outcome"), shown(entry, "target")});
    }
  }
  if (!options.json) print(table.is_empty() ? "no acts\n" : table.text(terminal_width()));
  if (left_out > 0) {
    note(std::to_string(left_out) + " earlier " + (left_out == 1 ? "act is" : "acts are") +
             " not shown; use --all",
         options.json);
  }
  return exit_done;
}

void add_audit(CommandLine& line) {
  const auto options = std::make_shared<AuditOptions>();
  auto* command = line.app.add_subcommand("audit", "List who acted: cancels, aborts, logins, …");
  auto* audit_limit =
      command->add_option("--limit", options->limit, "Number of newest acts to show")
          ->capture_default_str()
          ->check(integer(1, INT32_MAX));
  command->add_flag("--all", options->all, "Show all")->excludes(audit_limit);
  command->add_flag("--json", options->json, "Print one act (JSON) per line");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = audit(*options); });
}

}  // namespace watchdog::monitor
