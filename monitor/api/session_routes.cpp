#include <utility>

#include "api/routes.h"
#include "watchdog/ids.h"
#include "watchdog/json.h"
#include "watchdog/progress.h"
#include "watchdog/redaction.h"

namespace watchdog::monitor {
namespace {

Error has_ended(const SessionRow& row) {
  return {ErrorCode::conflict,
          "session " + row.id + " has ended already: " + std::string(name_of(row.lifecycle)),
          "sessionId"};
}

}  // namespace

void get_progress(const CallPtr& call) {
  with_session(call, [call](const Watched& watched) {
    auto document = document_of(call->backend, call->id, watched);
    return document ? Response{.body = std::move(*document)} : error_response(document.error());
  });
}

void get_status(const CallPtr& call) {
  call->id = call->target.text("sessionId");
  if (call->id.empty()) {
    return call->reply(error_response({ErrorCode::malformed, "sessionId is missing", "sessionId"}));
  }
  with_session(call, [call](const Watched& watched) {
    const auto& history = watched.judged.history;
    JsonWriter out;
    out.open_object().field("sessionId", call->id);
    out.field("status", name_of(history.lifecycle))
        .field("iteration", history.iteration)
        .key("error");
    const auto& outcome = history.notes->outcome;
    if (outcome && outcome->kind == OutcomeKind::failed) {
      out.value(outcome->error.empty() ? outcome->reason : outcome->error);
    } else {
      out.value(nullptr);
    }
    out.close_object();
    return json_response(out);
  });
}

void list_progress(const CallPtr& call) {
  auto filter = filter_of(call->target, page_max);
  if (!filter) return call->reply(error_response(filter.error()));
  reading(call, [call, filter = std::move(*filter)](StoreReader& reader) {
    const auto rows = reader.sessions(filter);
    if (!rows) return call->reply(error_response(rows.error()));
    JsonWriter out;
    out.open_object().key("sessions").open_array();
    for (const auto& row : *rows) {
      const auto watched = look_up(call->backend, reader, row);
      if (!watched) return call->reply(error_response(watched.error()));
      const auto document = document_of(call->backend, row.id, *watched);
      if (!document) return call->reply(error_response(document.error()));
      out.raw(*document);
    }
    out.close_array().key("next");
    const bool more = static_cast<int>(rows->size()) == filter.limit;
    more ? out.value(rows->back().key) : out.value(nullptr);
    out.close_object();
    call->reply(json_response(out));
  });
}

void create_session(const CallPtr& call) {
  Batch batch{.creation = Creation::demand};
  auto spec = session_spec_from_json(call->request.body, batch.session);
  call->request.body = {};
  if (!spec) return call->reply(error_response(spec.error()));
  batch.spec = std::move(*spec);
  if (batch.session.empty()) batch.session = new_ulid(system_clock().wall());
  if (batch.spec.process) {
    Report& start = batch.reports.emplace_back();
    start.kind = ReportKind::start;
    // Once a process, however often the session is asked for.
    start.event_id = "watchdog-start-" + std::to_string(batch.spec.process->pid) + "-" +
                     std::to_string(batch.spec.process->start_ticks);
    start.detail = *batch.spec.process;
  }
  const auto id = batch.session;
  call->backend.append(std::move(batch), [call, id](Result<Receipt> receipt) {
    if (!receipt) return call->reply(error_response(receipt.error()));
    JsonWriter out;
    out.open_object().field("sessionId", id).field("created", receipt->created).close_object();
    call->reply(json_response(out, receipt->created ? 201 : 200));
  });
}

void patch_session(const CallPtr& call) {
  auto patch = policy_member_from_json(call->request.body);
  if (!patch) return call->reply(error_response(patch.error()));
  redact(*patch);
  reading(call, [call, patch = *patch](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    if (is_end(row->lifecycle)) return call->reply(error_response(has_ended(*row)));
    const auto watched = look_up(call->backend, reader, *row);
    if (!watched) return call->reply(error_response(watched.error()));
    const auto policy = patched(*watched->judged.policy, patch);
    if (auto allowed = check(policy); !allowed) return call->reply(error_response(allowed.error()));
    Batch batch{.session = call->id, .creation = Creation::refuse};
    Report& report = batch.reports.emplace_back();
    report.kind = ReportKind::policy;
    report.detail = patch;
    call->backend.append(std::move(batch), [call, policy](Result<Receipt> receipt) {
      if (!receipt) return call->reply(error_response(receipt.error()));
      JsonWriter out;
      out.open_object().field("sessionId", call->id);
      out.key("policy").raw(to_json(policy)).close_object();
      call->reply(json_response(out));
    });
  });
}

void cancel_session(const CallPtr& call) {
  auto asked = request_in(*call);
  if (!asked) return call->reply(error_response(asked.error()));
  reading(call, [call, asked = std::move(*asked)](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto watched = look_up(call->backend, reader, *row);
    if (!watched) return call->reply(error_response(watched.error()));
    if (is_end(row->lifecycle)) return call->reply(error_response(has_ended(*row)));
    const bool ends = unserved(watched->judged);
    Batch batch{.session = call->id, .creation = Creation::refuse};
    Report& request = batch.reports.emplace_back();
    request.kind = ReportKind::cancel;
    request.detail = asked;
    if (ends) {
      Report& end = batch.reports.emplace_back();
      end.kind = ReportKind::end;
      end.detail = Outcome{.kind = OutcomeKind::cancelled,
                           .reason = "cancelled_by_" + asked.by,
                           .error = asked.reason};
    }
    call->backend.append(std::move(batch), [call, ends](Result<Receipt> receipt) {
      if (!receipt) return call->reply(error_response(receipt.error()));
      JsonWriter out;
      out.open_object().field("ok", true).field("sessionId", call->id).field("ended", ends);
      out.close_object();
      call->reply(json_response(out));
    });
  });
}

}  // namespace watchdog::monitor
