#include <deque>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/table.h"

namespace watchdog::monitor {

using nlohmann::json;

int audit(const AuditOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  std::deque<json> newest;
  for (json after = 0; !after.is_null();) {
    const auto body = endpoint->ask(Method::get, "/api/audit?limit=1000&after=" + after.dump());
    if (!body) return complain(body.error());
    auto page = json::parse(*body);
    for (auto& entry : page["audit"]) {
      newest.push_back(std::move(entry));
      if (!options.all && newest.size() > options.limit) newest.pop_front();
    }
    after = page["next"];
  }
  Table table({"TIME", "WHO", "FROM", "DID", "OUTCOME", "TO"});
  for (const auto& entry : newest) {
    if (options.json) {
      print_line(entry.dump());
    } else {
      table.add({local_time(entry["at"]), shown(entry, "actor"), shown(entry, "peer"),
                 shown(entry, "action"), shown(entry, "outcome"), shown(entry, "target")});
    }
  }
  if (!options.json) print(table.text(terminal_width()));
  return exit_done;
}

}  // namespace watchdog::monitor
