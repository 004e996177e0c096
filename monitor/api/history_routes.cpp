#include "api/routes.h"
#include "store/transition_reader.h"

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
    const auto rows = TransitionReader(reader).changes_since(since, changes_max);
    if (!rows) return call->reply(error_response(rows.error()));
    JsonWriter out;
    out.open_object().field("now", wall.time_since_epoch().count());
    out.field("since", since.time_since_epoch().count());
    out.field("complete", static_cast<int>(rows->size()) < changes_max);
    out.key("changes").open_array();
    for (auto change = rows->rbegin(); change != rows->rend(); ++change) {
      out.open_object().field("sessionId", change->session);
      out.field("at", change->at.time_since_epoch().count());
      out.field("from", name_of(change->from)).field("health", name_of(change->health));
      out.key("pattern");
      change->pattern == Pattern::none ? out.value(nullptr) : out.value(name_of(change->pattern));
      out.close_object();
    }
    out.close_array().close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
