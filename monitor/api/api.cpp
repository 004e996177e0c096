#include "api/api.h"

#include <array>
#include <memory>
#include <utility>

#include "api/explanation.h"
#include "api/page.h"
#include "api/target.h"
#include "api/turns.h"
#include "watchdog/ids.h"
#include "watchdog/json.h"
#include "watchdog/json_writer.h"
#include "watchdog/progress.h"

namespace watchdog::monitor {
namespace {

constexpr int page_max = 1'000;

/// One request on its way: what a route needs.
struct Call {
  Backend& backend;
  CheckDesk& desk;
  Request request;
  Target target;
  std::string id;    ///< From the path, where the route has one: a session's, check's or turn's.
  std::string tool;  ///< Likewise: a call of the turn.
  Reply reply;
};
using CallPtr = std::shared_ptr<Call>;

Response json(JsonWriter& out, int status = 200) {
  return {.status = status, .body = out.take()};
}

Result<std::string> document_of(Backend& backend, std::string_view id, const Watched& watched) {
  const auto explained_by = explanation(backend, id, watched.judged);
  if (!explained_by) return explained_by.error();
  const auto now = std::max(backend.now(), watched.judged.history.tick);
  return progress_document(id, watched.judged, *watched.description, now, system_clock().wall(),
                           *explained_by);
}

/// Runs `work` where it may wait for the disk.
void reading(const CallPtr& call, std::function<void(StoreReader&)> work) {
  call->backend.read(std::move(work),
                     [call](const Error& error) { call->reply(error_response(error)); });
}

/// The session as it is now, from memory or from its events.
Result<Watched> look_up(const Backend& backend, StoreReader& reader, const SessionRow& row) {
  if (auto watched = backend.watched(row.id)) return std::move(*watched);
  auto judged = judged_at(reader, row, backend.now());
  if (!judged) return judged.error();
  return Watched{.judged = std::move(*judged),
                 .description = std::make_shared<const std::string>(description_of(row.spec))};
}

/// Looks the session up and answers with what `answer` makes of it.
template <class Answer>
void with_session(const CallPtr& call, Answer answer) {
  if (const auto watched = call->backend.watched(call->id)) {
    return call->reply(answer(*watched));
  }
  reading(call, [call, answer](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto watched = look_up(call->backend, reader, *row);
    call->reply(watched ? answer(*watched) : error_response(watched.error()));
  });
}

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
    return json(out);
  });
}

Result<SessionFilter> filter_of(const Target& target) {
  SessionFilter filter;
  const auto health = target.choice<HealthKind>("health");
  if (!health) return health.error();
  const auto lifecycle = target.choice<Lifecycle>("lifecycle");
  if (!lifecycle) return lifecycle.error();
  const auto after = target.number("after", 0, 0, INT64_MAX);
  if (!after) return after.error();
  const auto limit = target.number("limit", 100, 1, page_max);
  if (!limit) return limit.error();
  filter.health = *health;
  filter.lifecycle = *lifecycle;
  filter.after = *after;
  filter.limit = static_cast<int>(*limit);
  filter.agent = target.text("agent");
  filter.parent = target.text("parent");
  filter.text = target.text("q");
  if (const auto label = target.text("label"); !label.empty()) {
    const auto colon = label.find(':');
    if (colon == std::string::npos || colon == 0) {
      return Error{ErrorCode::malformed, "label must be key:value", "label"};
    }
    filter.label_key = label.substr(0, colon);
    filter.label_value = label.substr(colon + 1);
  }
  return filter;
}

void list_progress(const CallPtr& call) {
  auto filter = filter_of(call->target);
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
    call->reply(json(out));
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
    call->reply(json(out, receipt->created ? 201 : 200));
  });
}

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
                         call->reply(json(out));
                       });
}

void get_events(const CallPtr& call) {
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  const auto limit = call->target.number("limit", 100, 1, page_max);
  const auto kind = call->target.choice<ReportKind>("kind");
  for (const auto* error : {after ? nullptr : &after.error(), limit ? nullptr : &limit.error(),
                            kind ? nullptr : &kind.error()}) {
    if (error != nullptr) return call->reply(error_response(*error));
  }
  reading(call, [call, after = *after, limit = static_cast<int>(*limit),
                 kind = *kind](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto page = reader.page(row->key, after, limit, kind);
    if (!page) return call->reply(error_response(page.error()));
    JsonWriter out;
    out.open_object().key("events").open_array();
    for (const auto& event : page->events) out.raw(to_json(event));
    out.close_array().field("next", page->next).close_object();
    call->reply(json(out));
  });
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

void write_transition(JsonWriter& out, const TransitionRow& row) {
  const auto& transition = row.transition;
  const auto& health = transition.health;
  out.open_object().field("id", row.id).field("seq", transition.seq);
  out.field("at", transition.at.time_since_epoch().count()).key("quietMs");
  row.quiet ? out.value(row.quiet->count()) : out.value(nullptr);
  out.field("from", name_of(transition.from)).field("health", name_of(health.kind));
  out.key("pattern");
  health.pattern == Pattern::none ? out.value(nullptr) : out.value(name_of(health.pattern));
  out.field("reason", transition.reason).key("evidence");
  write_evidence(out, health);
  out.field("detector", row.detector);
  out.field("policyDigest", hexadecimal(transition.policy_digest)).key("situation");
  // A file may come from anybody.
  const auto& situation = transition.situation;
  const bool readable = situation.starts_with('{') && is_json(situation);
  readable ? out.raw(situation) : out.value(nullptr);
  out.close_object();
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
    for (const auto& item : *rows) write_transition(out, item);
    out.close_array().key("next");
    static_cast<int>(rows->size()) == limit ? out.value(rows->back().id) : out.value(nullptr);
    out.close_object();
    call->reply(json(out));
  });
}

Error has_ended(const SessionRow& row) {
  return {ErrorCode::conflict,
          "session " + row.id + " has ended already: " + std::string(name_of(row.lifecycle)),
          "sessionId"};
}

void patch_session(const CallPtr& call) {
  const auto patch = policy_member_from_json(call->request.body);
  if (!patch) return call->reply(error_response(patch.error()));
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
      call->reply(json(out));
    });
  });
}

/// True if nobody is there to carry out a cancel: its process is gone, or it never gave a sign.
bool unserved(const Case& judged) {
  return judged.health.kind == HealthKind::dead || judged.history.notes->exited_seq != 0 ||
         judged.history.sign_seq == 0;
}

/// Who wants something to stop, and why: from the request's body.
Result<CancelRequest> request_in(const Call& call) {
  auto reason = text_field_from_json(call.request.body, "reason");
  if (!reason) return reason.error();
  auto by = text_field_from_json(call.request.body, "by");
  if (!by) return by.error();
  return CancelRequest{.by = by->empty() ? "user" : std::move(*by), .reason = std::move(*reason)};
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
      call->reply(json(out));
    });
  });
}

void list_turns(const CallPtr& call) {
  const auto limit = call->target.number("limit", 100, 1, page_max);
  if (!limit) return call->reply(error_response(limit.error()));
  const auto turns = call->backend.turns(static_cast<std::size_t>(*limit), {});
  call->reply(turns ? turns_response(*turns, call->backend.now()) : error_response(turns.error()));
}

Response stopping(const Call& call) {
  JsonWriter out;
  out.open_object().field("ok", true).field("turnId", call.id);
  if (!call.tool.empty()) out.field("toolId", call.tool);
  out.close_object();
  return json(out);
}

/// Asks for the end of a turn, or of one of its calls.
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
    call->backend.append(
        {.session = *session, .creation = Creation::refuse, .reports = std::move(*reports)},
        [call](const Result<Receipt>& receipt) {
          call->reply(receipt ? stopping(*call) : error_response(receipt.error()));
        });
  });
}

Response check_response(const Check& check, int status = 200) {
  JsonWriter out;
  out.open_object().field("checkId", check.id).field("sessionId", check.session);
  out.field("state", name_of(check.state)).key("status");
  check.status == Verdict::none ? out.value(nullptr) : out.value(name_of(check.status));
  out.key("reason");
  check.reason.empty() ? out.value(nullptr) : out.value(check.reason);
  out.field("confidence", check.confidence).field("ts", check.at.time_since_epoch().count());
  out.close_object();
  return json(out, status);
}

void post_check(const CallPtr& call) {
  const auto session = text_field_from_json(call->request.body, "sessionId");
  if (!session) return call->reply(error_response(session.error()));
  const auto check_id = text_field_from_json(call->request.body, "checkId");
  if (!check_id) return call->reply(error_response(check_id.error()));
  if (session->empty()) {
    return call->reply(error_response({ErrorCode::malformed, "sessionId is missing", "sessionId"}));
  }
  call->desk.ask(*session, *check_id, [call](const Result<Check>& check) {
    if (check) {
      return call->reply(check_response(*check, check->state == CheckState::pending ? 202 : 200));
    }
    // It is not the body that is too large.
    const auto& error = check.error();
    call->reply(error.code == ErrorCode::exhausted
                    ? error_response(429, name_of(error.code), error.message)
                    : error_response(error));
  });
}

void get_check(const CallPtr& call) {
  call->desk.find(call->id, [call](const Result<Check>& check) {
    call->reply(check ? check_response(*check) : error_response(check.error()));
  });
}

void get_healthz(const CallPtr& call) {
  call->reply({.body = R"({"status":"ok"})"});
}

void get_readyz(const CallPtr& call) {
  const auto trouble = call->backend.trouble();
  if (trouble) return call->reply(error_response(*trouble));
  call->reply({.body = R"({"status":"ready"})"});
}

void get_page(const CallPtr& call) {
  reading(call, [call](StoreReader& reader) {
    const auto rows = reader.sessions({.limit = 200});
    if (!rows) return call->reply(error_response(rows.error()));
    std::vector<PageRow> sessions;
    for (const auto& row : *rows) {
      auto watched = look_up(call->backend, reader, row);
      if (!watched) continue;
      auto explained_by = explanation(call->backend, row.id, watched->judged);
      if (!explained_by) return call->reply(error_response(explained_by.error()));
      sessions.push_back({row, std::move(watched->judged), std::move(*explained_by)});
    }
    call->reply(sessions_page(sessions, call->backend.now()));
  });
}

struct Route {
  Method method;
  std::string_view path;  ///< `:id` stands for a session, a check or a turn, `:tool` for a call.
  void (*answer)(const CallPtr&);
};

constexpr std::array routes{
    Route{Method::get, "api/autonomous/progress/:id", get_progress},
    Route{Method::get, "api/autonomous/progress", list_progress},
    Route{Method::get, "api/chat/autonomous/status", get_status},
    Route{Method::post, "api/autonomous/sessions", create_session},
    Route{Method::patch, "api/autonomous/sessions/:id", patch_session},
    Route{Method::post, "api/autonomous/sessions/:id/events", post_events},
    Route{Method::get, "api/autonomous/sessions/:id/events", get_events},
    Route{Method::get, "api/autonomous/sessions/:id/transitions", get_transitions},
    Route{Method::post, "api/autonomous/sessions/:id/cancel", cancel_session},
    Route{Method::get, "api/turns/active", list_turns},
    Route{Method::post, "api/turns/:id/abort", abort_turn},
    Route{Method::post, "api/turns/:id/abort-tool/:tool", abort_turn},
    Route{Method::post, "api/autonomous/check-status", post_check},
    Route{Method::get, "api/autonomous/check-status/:id", get_check},
    Route{Method::get, "healthz", get_healthz},
    Route{Method::get, "readyz", get_readyz},
    Route{Method::get, "", get_page}};

/// True if the path is the route's; `id` and `tool` get what stands there.
bool matches(std::string_view route, const std::vector<std::string>& segments, std::string& id,
             std::string& tool) {
  std::size_t at = 0;
  while (!route.empty()) {
    if (at == segments.size()) return false;
    const auto part = route.substr(0, route.find('/'));
    route.remove_prefix(std::min(part.size() + 1, route.size()));
    if (part == ":id") {
      id = segments[at];
    } else if (part == ":tool") {
      tool = segments[at];
    } else if (part != segments[at]) {
      return false;
    }
    ++at;
  }
  return at == segments.size();
}

std::string_view word_of(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::post:
      return "POST";
    case Method::patch:
      return "PATCH";
    default:
      return "HEAD";
  }
}

}  // namespace

std::optional<Response> Api::refuse(const Request& request) const {
  // Whether it lives may be asked by anybody who can reach it.
  return request.target == "/healthz" ? std::nullopt : gate_.refuse(request);
}

void Api::handle(Request request, Reply reply) const {
  auto target = Target::parse(request.target);
  if (!target) return reply(error_response(target.error()));
  const auto method = request.method == Method::head ? Method::get : request.method;
  std::string allowed;
  std::string id;
  std::string tool;
  for (const auto& route : routes) {
    if (!matches(route.path, target->segments, id, tool)) continue;
    if (route.method == method) {
      return route.answer(
          std::make_shared<Call>(Call{backend_, desk_, std::move(request), std::move(*target),
                                      std::move(id), std::move(tool), std::move(reply)}));
    }
    allowed.append(allowed.empty() ? "" : ", ").append(word_of(route.method));
  }
  if (allowed.empty())
    return reply(error_response(404, "not_found", "there is nothing at " + request.target));
  auto response = error_response(405, "refused", "this path takes " + allowed);
  response.extra_headers = "Allow: " + allowed + "\r\n";
  reply(std::move(response));
}

}  // namespace watchdog::monitor
