// A change of a session is a report: the function reads the session, checks, and appends one batch.
// A new policy is checked as a whole, but only the patch is stored. The start of a session has an
// id made of its process, so a repeated request adds no second start. A cancel also ends a session
// that no process serves, or that rests, in the same batch. Otherwise the agent must see the
// request, and the reply says by which way it will.
#include <utility>

#include "api/hints.h"
#include "api/parts.h"
#include "api/routes.h"
#include "api/session_list.h"
#include "codec/json.h"
#include "codec/progress.h"
#include "core/group_wait.h"
#include "facts/ids.h"
#include "privacy/redaction.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

constexpr int documents_per_part = 50;  ///< In one part of an answer.

Error has_ended(const SessionRow& row) {
  return {ErrorCode::conflict,
          "session " + row.id + " has ended already: " + std::string(name_of(row.lifecycle)),
          "sessionId"};
}

/// How an agent receives a cancel, and a sentence about it.
struct Reach {
  std::string_view by;
  std::string message;
};

/// Of an agent that a call holds up: it asks for nothing before the call is over. Empty: none does.
std::string held_up(const History& history) {
  if (history.lifecycle != Lifecycle::running || history.open_calls->empty()) return {};
  const auto& call = history.open_calls->back();
  return " Until its call " + (call.name.empty() ? std::string("of a tool") : call.name.str()) +
         " is over it asks for nothing. If that hangs, `cancel --kill` ends the agent with all that"
         " it runs" +
         (history.pid > 0 ? "." : "; its process must be known for that.");
}

Reach reach_of(const SessionRow& row, const History& history, bool ends) {
  const auto label = row.spec.labels.find("via");
  const std::string_view via =
      label == row.spec.labels.end() ? "" : std::string_view(label->second);
  const bool rested = history.lifecycle == Lifecycle::idle;
  const std::string process =
      history.pid > 0 ? " `cancel --kill` can end its process if the monitor found that itself."
                      : " Its process is not known, either.";
  if (ends && !rested) return {"ended", "cancelled at once: no process was working on it"};
  if (via == "hooks")
    return {"hooks", std::string(ends ? "cancelled at once: it was idle." : "cancel requested.") +
                         " Each further call and prompt that its hooks ask for is denied." +
                         held_up(history)};
  if (via == "proxy")
    return {"proxy", std::string(ends ? "cancelled at once: it was idle." : "cancel requested.") +
                         " Its next request to its model is denied."};
  if (via == "notify" || via == "transcript")
    return {"nothing",
            "nothing reaches this agent: it only reports its answers, and takes none." + process};
  return {"report", "cancel requested; the agent will see it with its next report"};
}

/// True if an agent that does not report by itself rests: there is nothing to stop. A wrapped
/// command has a process that goes on.
bool rests(const SessionRow& row, const History& history) {
  const auto via = row.spec.labels.find("via");
  const bool reports = via == row.spec.labels.end() || via->second == "run";
  return history.lifecycle == Lifecycle::idle && !reports;
}

}  // namespace

void get_progress(const CallPtr& call) {
  const auto reply = [call](Result<std::string> document) {
    call->reply(document ? Response{.body = std::move(*document)}
                         : error_response(document.error()));
  };
  const auto watched = call->backend.watched(call->id);
  // An estimate needs the session's events, and a group its rows; other monitors may judge its
  // children.
  const bool needs_reader = call->backend.is_shared() ||
                            (watched && (may_be_group_wait(call->backend, call->id, *watched) ||
                                         may_be_estimated(call->backend, *watched)));
  if (watched && !needs_reader) return reply(document_of(call->backend, call->id, *watched));
  reading(call, [call, reply](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return reply(row.error());
    const auto found = look_up(call->backend, reader, *row);
    reply(found ? document_of(call->backend, reader, *row, *found) : found.error());
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
  auto query = query_of(call->target, page_max);
  if (!query) return call->reply(error_response(query.error()));
  const auto begin = [](JsonWriter& out) { out.open_object().key("sessions").open_array(); };
  reply_with_sessions(call, std::move(*query), documents_per_part, begin,
                      [call](StoreReader& reader, const SessionRow& row) -> Result<std::string> {
                        const auto watched = look_up(call->backend, reader, row);
                        if (!watched) return watched.error();
                        return document_of(call->backend, reader, row, *watched);
                      });
}

void create_session(const CallPtr& call) {
  Batch batch{.creation = Creation::demand, .by = ReportOrigin::agent};
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
  append_from_client(call, std::move(batch), [call, id](Result<Receipt> receipt) {
    if (!receipt) return call->reply(error_response(receipt.error()));
    if (receipt->created && call->hints != nullptr) call->hints->begin(id);
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
    Batch batch{.session = call->id, .creation = Creation::refuse, .by = ReportOrigin::monitor};
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
    const auto& history = watched->judged.history;
    const bool ends = unserved(watched->judged) || rests(*row, history);
    const auto reach = reach_of(*row, history, ends);
    Batch batch{.session = call->id, .creation = Creation::refuse, .by = ReportOrigin::monitor};
    Report& request = batch.reports.emplace_back();
    request.kind = ReportKind::cancel;
    request.detail = asked;
    if (ends) {
      Report& end = batch.reports.emplace_back();
      end.kind = ReportKind::end;
      end.detail = Outcome{.kind = OutcomeKind::cancelled,
                           .reason = std::string(reasons::cancelled),
                           .error = asked.reason,
                           .subject = asked.by};
    }
    call->backend.append(std::move(batch), [call, ends, reach](Result<Receipt> receipt) {
      if (!receipt) return call->reply(error_response(receipt.error()));
      JsonWriter out;
      out.open_object().field("ok", true).field("sessionId", call->id).field("ended", ends);
      out.field("reach", reach.by).field("message", reach.message).close_object();
      call->reply(json_response(out));
    });
  });
}

}  // namespace watchdog::monitor
