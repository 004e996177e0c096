// The steps that several routes share. A reporter can name any process. So each batch of a client
// passes here, and a named process is compared with the owner of the client's connection. That
// happens on a thread that may read /proc, while the client waits and holds its connection.
#include "api/call.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "api/explanation.h"
#include "codec/json.h"
#include "codec/progress.h"
#include "core/estimator.h"
#include "core/group_wait.h"
#include "privacy/content.h"
#include "process/process_sample.h"
#include "process/process_user.h"
#include "watchdog/session.h"

namespace watchdog::monitor {
namespace {

/// Characters; ids are shorter, but a path may say anything.
constexpr std::size_t audit_target_max = 300;

/// The process that a start names; null: it names none.
ProcessFacts* named_process(Report& report) {
  auto* process = std::get_if<ProcessFacts>(&report.detail);
  const bool names = report.kind == ReportKind::start && process != nullptr && process->pid > 0 &&
                     process->pid <= INT32_MAX;
  return names ? process : nullptr;
}

/// True if the batch's origin `run` is known: its wrapper's process holds this connection, or did
/// when it began.
bool is_from_wrapper(const Backend& backend, const Batch& batch) {
  const auto is_proven = [](const Report& report) {
    const auto* process = std::get_if<ProcessFacts>(&report.detail);
    return report.kind == ReportKind::start && process != nullptr &&
           process->known_by == KnownBy::run;
  };
  if (std::ranges::any_of(batch.reports, is_proven)) return true;
  const auto watched = backend.watched(batch.session);
  if (!watched) return false;
  const auto& sources = watched->judged.history.sources;
  return std::any_of(sources.begin(), sources.end(),
                     [](const SourceNote& note) { return note.origin == ReportOrigin::run; });
}

/// True if the client and the process that it names are on another machine.
bool is_far(const Request& request, const ProcessFacts& named) {
  return !is_loopback(request.peer) && machine_of(named) != machine_of(this_process());
}

/// True if a proxy of the monitor's own user sends this.
bool is_from_proxy(SocketOwners& owners, const Request& request) {
  static std::atomic<pid_t> known{0};  // the proxy that was asked about last
  const ClientConnection connection{
      .peer = request.peer, .peer_port = request.peer_port, .own_port = request.own_port};
  auto sender = owners.confirm(connection, known);
  if (!sender) sender = owners.find(connection);
  if (!sender || !acts_as(sender->pid, getpid())) return false;
  known = sender->pid;
  return true;
}

/// A stranger's words about a process that a proxy found would be taken for proven.
void make_a_message(Report& report) {
  report = {.kind = ReportKind::message,
            .name = "notification",
            .content = "a proxy that the monitor does not know names a process",
            .event_id = std::move(report.event_id)};
}

/// Reads /proc, while the client waits for its answer and so still holds its connection.
void confirm_processes(const Request& request, Batch& batch) {
  static SocketOwners owners;  // of the machine, as its processes are
  for (auto& report : batch.reports) {
    auto* process = named_process(report);
    if (process == nullptr) continue;
    const auto found = owners.confirm(
        {.peer = request.peer, .peer_port = request.peer_port, .own_port = request.own_port},
        static_cast<pid_t>(process->pid));
    const bool same =
        found && (process->start_ticks == 0 || process->start_ticks == found->start_ticks);
    if (!same) {
      if (is_far(request, *process)) continue;
      if (batch.by == ReportOrigin::run) batch.by = ReportOrigin::agent;
      if (batch.by == ReportOrigin::proxy && !is_from_proxy(owners, request))
        make_a_message(report);
      continue;
    }
    *process = facts_of(*found);
    if (batch.by == ReportOrigin::run) process->known_by = KnownBy::run;
  }
}

}  // namespace

Response json_response(JsonWriter& out, int status) {
  return {.status = status, .body = out.finish()};
}

bool may_be_estimated(const Backend& backend, const Watched& watched) {
  return backend.estimator() != nullptr && !is_end(watched.judged.history.lifecycle) &&
         backend.estimator()->knows(watched.description->agent);
}

Result<std::string> document_of(Backend& backend, StoreReader& reader, const SessionRow& row,
                                const Watched& watched) {
  std::optional<Estimate> estimate;
  if (may_be_estimated(backend, watched)) {
    auto made = backend.estimator()->of(reader, row.key, watched.description->agent);
    if (!made) return made.error();
    estimate = std::move(*made);
  }
  const auto group = group_wait(backend, reader, row, watched);
  if (!group) return group.error();
  auto document = document_of(backend, row.id, watched, estimate);
  if (!document) return document;
  return with_group_wait(std::move(*document), *group);
}

Result<std::string> document_of(Backend& backend, std::string_view id, const Watched& watched,
                                const std::optional<Estimate>& estimate) {
  const auto explained_by = explanation(backend, id, watched.judged);
  if (!explained_by) return explained_by.error();
  const auto silent = silent_child(backend, id, watched.judged);
  if (!silent) return silent.error();
  const auto now = std::max(backend.now(), watched.judged.history.tick);
  auto document = progress_document(id, watched.judged, *watched.description, now,
                                    system_clock().wall(), *explained_by, estimate);
  return with_question(with_silent_child(std::move(document), *silent), backend.questions().of(id));
}

Result<SessionFilter> filter_of(const Target& target, int limit_max) {
  SessionFilter filter;
  const auto health = target.choices<HealthKind>("health");
  if (!health) return health.error();
  const auto lifecycle = target.choice<Lifecycle>("lifecycle");
  if (!lifecycle) return lifecycle.error();
  const auto after = target.number("after", 0, 0, INT64_MAX);
  if (!after) return after.error();
  const auto limit = target.number("limit", 100, 1, limit_max);
  if (!limit) return limit.error();
  filter.healths = *health;
  filter.lifecycle = *lifecycle;
  filter.after = *after;
  filter.limit = static_cast<int>(*limit);
  filter.agent = target.text("agent");
  filter.parent = target.text("parent");
  filter.ancestor = target.text("ancestor");
  filter.text = target.text("q");
  if (const auto search = target.text("search"); !search.empty()) {
    if (!filter.text.empty())
      return Error{ErrorCode::malformed, "search means the same as q; give one of them", "search"};
    filter.text = search;
  }
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

void reading(const CallPtr& call, std::function<void(StoreReader&)> work) {
  call->backend.read(std::move(work),
                     [call](const Error& error) { call->reply(error_response(error)); });
}

void with_session(const CallPtr& call, std::function<Response(const Watched&)> answer) {
  if (const auto watched = call->backend.watched(call->id)) {
    return call->reply(answer(*watched));
  }
  reading(call, [call, answer = std::move(answer)](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto watched = look_up(call->backend, reader, *row);
    call->reply(watched ? answer(*watched) : error_response(watched.error()));
  });
}

void append_from_client(const CallPtr& call, Batch batch,
                        std::function<void(Result<Receipt>)> done) {
  const bool names = std::ranges::any_of(
      batch.reports, [](Report& report) { return named_process(report) != nullptr; });
  const bool is_near = is_loopback(call->request.peer);
  const auto own_word = [is_near](const Backend& backend, Batch& said) {
    if (is_near && said.by == ReportOrigin::run && !is_from_wrapper(backend, said))
      said.by = ReportOrigin::agent;
  };
  if (!names) {
    own_word(call->backend, batch);
    return call->backend.append(std::move(batch), std::move(done));
  }
  const auto shared = std::make_shared<Batch>(std::move(batch));
  call->backend.read(
      [call, shared, done, own_word](StoreReader&) {
        confirm_processes(call->request, *shared);
        own_word(call->backend, *shared);
        call->backend.append(std::move(*shared), done);
      },
      [call, shared, done, own_word](const Error&) {
        if (shared->by == ReportOrigin::proxy) shared->by = ReportOrigin::agent;
        own_word(call->backend, *shared);
        call->backend.append(std::move(*shared), done);
      });
}

void keep_and_reply(Backend& backend, AuditEntry entry, Response response, const Reply& reply) {
  entry.at = system_clock().wall();
  entry.target = std::string(first_characters(entry.target, audit_target_max));
  entry.outcome = response.status < 400 ? "ok" : std::to_string(response.status);
  auto write = [entry = std::move(entry)](Store& store) { return store.keep(entry); };
  if (response.status >= 400) {  // nothing was done: the answer need not wait
    backend.write(std::move(write), [](const Result<void>&) {});
    return reply(std::move(response));
  }
  backend.write(std::move(write),
                [response = std::move(response), reply](const Result<void>& kept) {
                  if (kept) return reply(response);
                  auto error = kept.error();
                  error.message = "done, but it is not in the trail of who acted: " + error.message;
                  reply(error_response(error));
                });
}

bool unserved(const Case& judged) {
  return judged.health.kind == HealthKind::dead || judged.history.notes->exited_seq != 0 ||
         judged.history.sign_seq == 0;
}

Result<CancelRequest> request_in(const Call& call) {
  auto reason = text_field_from_json(call.request.body, "reason");
  if (!reason) return reason.error();
  auto by = text_field_from_json(call.request.body, "by");
  if (!by) return by.error();
  const bool is_named =
      call.actor != "local" && call.actor != "environment" && call.actor != "user";
  if (by->empty()) {
    *by = call.actor == "local" ? "user" : call.actor;
  } else if (is_named && *by != call.actor) {
    *by += " (token of " + call.actor + ")";  // a caller can name anybody
  }
  return CancelRequest{.by = std::move(*by), .reason = std::move(*reason)};
}

}  // namespace watchdog::monitor
