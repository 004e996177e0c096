#include <utility>

#include "api/routes.h"
#include "api/transition.h"
#include "watchdog/json.h"
#include "watchdog/progress.h"

namespace watchdog::monitor {
namespace {

/// The members that a cancel and an abort have in common.
void write_request(JsonWriter& out, const CancelRequest& request) {
  out.field("by", request.by).field("reason", request.reason);
  out.field("at", request.at.time_since_epoch().count());
}

void write_directive(JsonWriter& out, const Directive& directive) {
  out.key("directive");
  if (!directive.cancel && directive.aborts.empty()) {
    out.value(nullptr);
    return;
  }
  out.open_object().key("cancel");
  if (directive.cancel) {
    out.open_object();
    write_request(out, *directive.cancel);
    out.close_object();
  } else {
    out.value(nullptr);
  }
  out.key("aborts").open_array();
  for (const auto& abort : directive.aborts) {
    out.open_object().field("turnId", abort.turn).key("toolId");
    abort.call.empty() ? out.value(nullptr) : out.value(abort.call);
    write_request(out, abort);
    out.close_object();
  }
  out.close_array().close_object();
}

/// A session's transitions after an id: those written down, then those that nobody has yet.
Result<std::vector<TransitionRow>> transitions_of(const Backend& backend, StoreReader& reader,
                                                  const SessionRow& session, std::int64_t after,
                                                  int limit) {
  auto rows = reader.transitions(session.key, after, limit);
  // What is in memory has its judge, who writes them down.
  if (!rows || static_cast<int>(rows->size()) == limit || backend.watched(session.id)) return rows;
  auto more = reader.unwritten(session, backend.now());
  if (!more) return more;
  for (auto& row : *more) {
    if (static_cast<int>(rows->size()) == limit) break;
    if (row.id > after) rows->push_back(std::move(row));
  }
  return rows;
}

}  // namespace

void post_events(const CallPtr& call) {
  auto list = reports_from_json(call->request.body);
  call->request.body = {};
  if (!list) return call->reply(error_response(list.error()));
  const auto wanted = call->target.number("create", 1, 0, 1);
  if (!wanted) return call->reply(error_response(wanted.error()));
  const bool create = *wanted == 1 && !list->reports.empty();
  const auto ignored = list->ignored;
  call->backend.append({.session = call->id,
                        .creation = create ? Creation::allow : Creation::refuse,
                        .reports = std::move(list->reports)},
                       [call, ignored](Result<Receipt> receipt) {
                         if (!receipt) return call->reply(error_response(receipt.error()));
                         JsonWriter out;
                         out.open_object().field("accepted", receipt->accepted);
                         out.field("duplicates", receipt->duplicates).field("late", receipt->late);
                         out.field("ignored", ignored);
                         write_directive(out, receipt->directive);
                         out.close_object();
                         call->reply(json_response(out));
                       });
}

void get_events(const CallPtr& call) {
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  const auto before = call->target.number("before", 0, 0, INT64_MAX);
  const auto limit = call->target.number("limit", 100, 1, page_max);
  const auto kind = call->target.choice<ReportKind>("kind");
  for (const auto* error : {after ? nullptr : &after.error(), before ? nullptr : &before.error(),
                            limit ? nullptr : &limit.error(), kind ? nullptr : &kind.error()}) {
    if (error != nullptr) return call->reply(error_response(*error));
  }
  reading(call, [call, after = *after, before = *before, limit = static_cast<int>(*limit),
                 kind = *kind](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto page = before > 0 ? reader.page_before(row->key, before, limit, kind)
                                 : reader.page(row->key, after, limit, kind);
    if (!page) return call->reply(error_response(page.error()));
    JsonWriter out;
    out.open_object().key("events").open_array();
    for (const auto& event : page->events) out.raw(to_json(event));
    out.close_array().field("next", page->next).close_object();
    call->reply(json_response(out));
  });
}

void get_transitions(const CallPtr& call) {
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  if (!after) return call->reply(error_response(after.error()));
  const auto limit = call->target.number("limit", 100, 1, page_max);
  if (!limit) return call->reply(error_response(limit.error()));
  reading(call, [call, after = *after, limit = static_cast<int>(*limit)](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto rows = transitions_of(call->backend, reader, *row, after, limit);
    if (!rows) return call->reply(error_response(rows.error()));
    JsonWriter out;
    out.open_object().key("transitions").open_array();
    for (const auto& item : *rows) out.raw(transition_json(item));
    out.close_array().key("next");
    static_cast<int>(rows->size()) == limit ? out.value(rows->back().id) : out.value(nullptr);
    out.close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
