#include <memory>
#include <utility>

#include "api/parts.h"
#include "api/routes.h"
#include "api/session_list.h"
#include "api/stream.h"
#include "core/session_row.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

constexpr int rows_per_part = 250;  ///< In one part of an answer.

Result<void> choose(const std::string& include, StreamOptions& options) {
  if (include.empty()) return {};
  options.events = options.transitions = options.sessions = options.summary = false;
  for (std::size_t from = 0; from <= include.size();) {
    const auto to = std::min(include.find(',', from), include.size());
    const auto word = include.substr(from, to - from);
    if (word == "events") {
      options.events = true;
    } else if (word == "transitions") {
      options.transitions = true;
    } else if (word == "sessions") {
      options.sessions = true;
    } else if (word == "summary") {
      options.summary = true;
    } else {
      return Error{ErrorCode::invalid,
                   unknown_word("include", word, {"events", "transitions", "sessions", "summary"}),
                   "include"};
    }
    from = to + 1;
  }
  return {};
}

Result<StreamOptions> options_of(const Call& call) {
  StreamOptions options;
  if (auto chosen = choose(call.target.text("include"), options); !chosen) return chosen.error();
  // The client's newest event is newer than its page.
  const bool again = !call.request.last_event_id.empty();
  const auto after = again ? call.request.last_event_id : call.target.text("after");
  if (after.empty()) return options;
  options.after = Cursor::parse(after);
  if (!options.after) {
    return Error{ErrorCode::malformed, "that is not an id of this stream: SEQ.TRANSITION",
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
  options.allowed = call->access.lasting(call->request, Scope::read);
  call->reply({.content_type = "text/event-stream",
               .extra_headers = "X-Accel-Buffering: no\r\n",
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
  auto query = query_of(call->target, rows_max);
  if (!query) return call->reply(error_response(query.error()));
  const auto wall = system_clock().wall();
  const auto begin = [wall](JsonWriter& out) {
    out.open_object().field("now", wall.time_since_epoch().count()).key("sessions").open_array();
  };
  reply_with_sessions(
      call, std::move(*query), rows_per_part, begin,
      [call, wall](StoreReader& reader, const SessionRow& row) -> Result<std::string> {
        return session_row(call->backend, reader, row, wall);
      });
}

}  // namespace watchdog::monitor
