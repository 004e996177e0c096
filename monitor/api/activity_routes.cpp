// Sessions that ended are at rest, so only the others are judged. Which of several speaks for all
// is decided by the order of the words; of equals the one that changed last does.
#include <array>
#include <optional>
#include <utility>

#include "api/routes.h"
#include "core/activity.h"
#include "core/session_row.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr int rows_at_once = 500;  ///< Read from the file.

/// The session that speaks for all that were asked for, and their numbers.
struct Found {
  std::array<std::int64_t, std::size(Names<Activity>::all)> counts{};
  Activity activity = Activity::unknown;
  std::string session{}, reason{};
  WallTime since{};

  void add(const std::string& id, Activity one, WallTime one_since, std::string why) {
    ++counts[static_cast<std::size_t>(one)];
    if (!session.empty() && (one > activity || (one == activity && one_since <= since))) return;
    activity = one;
    session = id;
    reason = std::move(why);
    since = one_since;
  }
};

Result<void> add(const CallPtr& call, StoreReader& reader, const SessionRow& row, WallTime wall,
                 Found& found) {
  const auto watched = look_up(call->backend, reader, row);
  if (!watched) return watched.error();
  const auto now = call->backend.now();
  found.add(row.id, activity_of(watched->judged, wall), standing_since(watched->judged, now, wall),
            reason_of(watched->judged, now));
  return {};
}

Result<Found> find(const CallPtr& call, StoreReader& reader, SessionFilter filter, WallTime wall) {
  Found found;
  filter.limit = rows_at_once;
  for (const auto lifecycle : {Lifecycle::running, Lifecycle::waiting, Lifecycle::idle}) {
    filter.lifecycle = lifecycle;
    filter.after = 0;
    for (int looked = 0; looked < rows_max; looked += rows_at_once) {
      const auto rows = reader.sessions(filter);
      if (!rows) return rows.error();
      for (const auto& row : *rows)
        if (auto added = add(call, reader, row, wall, found); !added) return added.error();
      if (static_cast<int>(rows->size()) < rows_at_once) break;
      filter.after = rows->back().key;
    }
  }
  if (!found.session.empty()) return found;
  // The newest of those that ended, if there is one.
  filter.lifecycle.reset();
  filter.after = 0;
  filter.limit = 1;
  const auto rows = reader.sessions(filter);
  if (!rows) return rows.error();
  for (const auto& row : *rows)
    if (auto added = add(call, reader, row, wall, found); !added) return added.error();
  return found;
}

std::string text_of(const Found& found, WallTime wall) {
  JsonWriter out;
  out.open_object().field("activity", name_of(found.activity)).key("sessionId");
  const bool is_there = !found.session.empty();
  is_there ? out.value(found.session) : out.value(nullptr);
  out.field("reason", is_there ? std::string_view(found.reason) : "No session is known");
  out.key("since");
  is_there ? out.value(found.since.time_since_epoch().count()) : out.value(nullptr);
  out.key("sessions").open_object();
  for (std::size_t at = 0; at < found.counts.size(); ++at)
    out.field(Names<Activity>::all[at], found.counts[at]);
  out.close_object().field("now", wall.time_since_epoch().count()).close_object();
  return out.finish();
}

}  // namespace

void get_activity(const CallPtr& call) {
  auto filter = filter_of(call->target, 1);
  if (!filter) return call->reply(error_response(filter.error()));
  reading(call, [call, filter = std::move(*filter)](StoreReader& reader) {
    const auto wall = system_clock().wall();
    const auto reply = [&](const Result<Found>& found) {
      call->reply(found ? Response{.body = text_of(*found, wall)} : error_response(found.error()));
    };
    const auto session = call->target.text("session");
    if (session.empty()) return reply(find(call, reader, filter, wall));
    const auto row = reader.session(session);
    if (!row) return call->reply(error_response(row.error()));
    Found found;
    const auto added = add(call, reader, *row, wall, found);
    reply(added ? Result<Found>(std::move(found)) : Result<Found>(added.error()));
  });
}

}  // namespace watchdog::monitor
