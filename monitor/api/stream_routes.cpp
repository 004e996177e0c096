#include <memory>
#include <utility>

#include "api/routes.h"
#include "api/session_row.h"
#include "api/stream.h"

namespace watchdog::monitor {
namespace {

Result<void> choose(const std::string& include, StreamOptions& options) {
  if (include.empty()) return {};
  options.events = options.transitions = options.sessions = false;
  for (std::size_t from = 0; from <= include.size();) {
    const auto to = std::min(include.find(',', from), include.size());
    const auto word = include.substr(from, to - from);
    if (word == "events") {
      options.events = true;
    } else if (word == "transitions") {
      options.transitions = true;
    } else if (word == "sessions") {
      options.sessions = true;
    } else {
      return Error{ErrorCode::invalid, "include knows events, transitions and sessions", "include"};
    }
    from = to + 1;
  }
  return {};
}

Result<StreamOptions> options_of(const Call& call) {
  StreamOptions options;
  if (auto chosen = choose(call.target.text("include"), options); !chosen) return chosen.error();
  // What the client heard last is newer than what its page was opened with.
  const bool again = !call.request.last_event_id.empty();
  const auto after = again ? call.request.last_event_id : call.target.text("after");
  if (after.empty()) return options;
  options.after = Cursor::parse(after);
  if (!options.after) {
    return Error{ErrorCode::malformed, "that is no id of this stream: SEQ.TRANSITION",
                 again ? "Last-Event-ID" : "after"};
  }
  return options;
}

void open_stream(const CallPtr& call, StreamOptions options) {
  if (call->feed == nullptr) {
    return call->reply(
        error_response(503, "unavailable", "only a running monitor tells what happens"));
  }
  if (call->feed->listeners() >= Feed::listeners_max) {
    return call->reply(error_response(503, "exhausted", "too many streams are open; try again"));
  }
  call->reply({.content_type = "text/event-stream",
               .source = std::make_shared<Stream>(call->backend, *call->feed, std::move(options))});
}

}  // namespace

void stream_all(const CallPtr& call) {
  auto options = options_of(*call);
  if (!options) return call->reply(error_response(options.error()));
  open_stream(call, std::move(*options));
}

void stream_session(const CallPtr& call) {
  auto options = options_of(*call);
  if (!options) return call->reply(error_response(options.error()));
  reading(call, [call, options = std::move(*options)](StoreReader& reader) mutable {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    options.session = row->id;
    options.key = row->key;
    open_stream(call, std::move(options));
  });
}

void list_sessions(const CallPtr& call) {
  auto filter = filter_of(call->target, rows_max);
  if (!filter) return call->reply(error_response(filter.error()));
  reading(call, [call, filter = std::move(*filter)](StoreReader& reader) {
    const auto rows = reader.sessions(filter);
    if (!rows) return call->reply(error_response(rows.error()));
    const auto wall = system_clock().wall();
    JsonWriter out;
    out.open_object().field("now", wall.time_since_epoch().count()).key("sessions").open_array();
    for (const auto& row : *rows) out.raw(session_row(call->backend, row, wall));
    out.close_array().key("next");
    const bool more = static_cast<int>(rows->size()) == filter.limit;
    more ? out.value(rows->back().key) : out.value(nullptr);
    out.close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
