#include <utility>

#include "api/routes.h"
#include "api/turns.h"
#include "codec/json.h"

namespace watchdog::monitor {
namespace {

Response stopping(const Call& call) {
  JsonWriter out;
  out.open_object().field("ok", true).field("turnId", call.id);
  if (!call.tool.empty()) out.field("toolId", call.tool);
  out.close_object();
  return json_response(out);
}

}  // namespace

void list_turns(const CallPtr& call) {
  const auto limit = call->target.number("limit", 100, 1, page_max);
  if (!limit) return call->reply(error_response(limit.error()));
  const auto answer = [call, count_max = static_cast<std::size_t>(*limit)] {
    const auto turns = call->backend.turns(count_max, {});
    call->reply(turns ? turns_response(*turns, call->backend.now())
                      : error_response(turns.error()));
  };
  if (!call->backend.is_shared()) return answer();
  reading(call, [answer](StoreReader&) { answer(); });
}

void abort_turn(const CallPtr& call) {
  auto asked = request_in(*call);
  if (!asked) return call->reply(error_response(asked.error()));
  asked->turn = call->id;
  asked->call = call->tool;
  reading(call, [call, asked = std::move(*asked)](StoreReader& reader) {
    const auto session = session_of_turn(call->backend, asked.turn);
    if (!session) return call->reply(error_response(session.error()));
    const auto row = reader.session(*session);
    if (!row) return call->reply(error_response(row.error()));
    const auto watched = look_up(call->backend, reader, *row);
    if (!watched) return call->reply(error_response(watched.error()));
    const auto directive = reader.directive_of(*session);
    if (!directive) return call->reply(error_response(directive.error()));
    auto reports = reports_to_abort(watched->judged, *directive, asked, unserved(watched->judged));
    if (!reports) return call->reply(error_response(reports.error()));
    if (reports->empty()) return call->reply(stopping(*call));
    call->backend.append({.session = *session,
                          .creation = Creation::refuse,
                          .reports = std::move(*reports),
                          .by = ReportOrigin::monitor},
                         [call](const Result<Receipt>& receipt) {
                           call->reply(receipt ? stopping(*call) : error_response(receipt.error()));
                         });
  });
}

}  // namespace watchdog::monitor
