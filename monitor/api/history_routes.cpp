#include <unordered_map>
#include <utility>

#include "api/routes.h"

namespace watchdog::monitor {
namespace {

constexpr int minutes_max = 1'440;
constexpr int changes_max = 20'000;

}  // namespace

void get_history(const CallPtr& call) {
  const auto minutes = call->target.number("minutes", 30, 1, minutes_max);
  if (!minutes) return call->reply(error_response(minutes.error()));
  reading(call, [call, minutes = *minutes](StoreReader& reader) {
    const auto wall = system_clock().wall();
    const auto since = wall - std::chrono::minutes(minutes);
    const auto rows = reader.transitions_since(since, changes_max);
    if (!rows) return call->reply(error_response(rows.error()));
    std::unordered_map<SessionKey, std::string> names;
    JsonWriter out;
    out.open_object().field("now", wall.time_since_epoch().count());
    out.field("since", since.time_since_epoch().count());
    out.field("complete", static_cast<int>(rows->size()) < changes_max);
    out.key("changes").open_array();
    for (auto at = rows->rbegin(); at != rows->rend(); ++at) {
      const auto& change = at->transition;
      auto& name = names[change.session];
      if (name.empty()) {
        const auto session = reader.session(change.session);
        if (!session) continue;  // dropped meanwhile
        name = session->id;
      }
      out.open_object().field("sessionId", name).field("at", change.at.time_since_epoch().count());
      out.field("from", name_of(change.from)).field("health", name_of(change.health.kind));
      out.key("pattern");
      const auto pattern = change.health.pattern;
      pattern == Pattern::none ? out.value(nullptr) : out.value(name_of(pattern));
      out.close_object();
    }
    out.close_array().close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
