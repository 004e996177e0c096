// A request passes twice. `refuse` sees the headers alone and decides whether the body is read.
// `handle` finds the route, checks access, parameters and room for reports in this order, and calls
// the route's function last. For an act, `handle` wraps the reply: a success goes out only after
// its audit entry is stored, a refusal at once. Refused acts of unknown callers are stored in
// limited number, so strangers cannot fill the disk. The first row of `routes` that fits path and
// method wins.
#include "api/api.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "api/login_page.h"
#include "api/page.h"
#include "api/recovery.h"
#include "api/routes.h"
#include "api/waits.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

/// The answer itself is all: other failures are reported elsewhere, of reports by /readyz, of
/// alerts by /metrics and /api/alerts.
void get_healthz(const CallPtr& call) {
  call->reply({.body = R"({"status":"ok"})"});
}

void get_readyz(const CallPtr& call) {
  auto trouble = call->backend.trouble();
  const auto vitals = call->backend.vitals();
  const auto shares = vitals ? vitals->shares : std::nullopt;
  const auto lease = shares ? lease_state(shares->since_renewal) : LeaseState::held;
  if (trouble) {
    if (lease == LeaseState::ended) trouble->message += ". Its leases ended: other monitors judge";
    auto response = error_response(*trouble);
    response.status = 503;  // Whatever hinders it: a probe reads the status alone.
    return call->reply(std::move(response));
  }
  JsonWriter out;
  out.open_object().field("status", "ready");
  if (shares) {
    out.field("shards", shares->shards).field("held", shares->held);
    out.field("monitors", shares->monitors).field("lease", name_of(lease));
    out.field("leaseAgeMs", shares->since_renewal.count());
  }
  out.close_object();
  call->reply({.body = out.finish()});
}

/// The answer to a report while the store is full.
Response full_store(const Request& /*request*/) {
  const auto error = no_room();
  auto response = error_response(507, name_of(error.code), error.message);
  response.extra_headers = "Retry-After: 2\r\n";
  return response;
}

struct Route {
  Method method;
  std::string_view path;  ///< `:id`: a session, check, turn, trace, agent or folder; `:tool`: what
                          ///< is in it.
  std::optional<Scope> scope;  ///< The permission that a caller needs; empty: none.
  void (*answer)(const CallPtr&);
  std::string_view query{};          ///< Names of its parameters, a blank between two; `*`: any.
  std::optional<AuditAction> act{};  ///< Its name in the audit log; empty: it is not logged.
  Response (*full)(const Request&) = full_store;  ///< The answer if there is no room.
  std::optional<Scope> other{};  ///< A scope that is enough as well; what it opens is less.

  /// The scope that this caller has to have.
  [[nodiscard]] std::optional<Scope> scope_for(const Caller& caller) const {
    return other && caller.scopes.contains(*other) ? other : scope;
  }
};

constexpr auto anybody = std::optional<Scope>{};
constexpr std::string_view session_parameters =
    "health lifecycle agent parent ancestor label q search attention state sort after limit";
constexpr std::array routes{
    Route{Method::get, "api/autonomous/progress/:id", Scope::read, get_progress},
    Route{Method::get, "api/autonomous/progress", Scope::read, list_progress, session_parameters},
    Route{Method::get, "api/chat/autonomous/status", Scope::read, get_status, "sessionId"},
    Route{Method::post, "api/autonomous/sessions", Scope::report, create_session},
    Route{Method::patch, "api/autonomous/sessions/:id", Scope::report, patch_session},
    Route{Method::post, "api/autonomous/sessions/:id/events", Scope::report, post_events,
          "create source strict"},
    Route{Method::get, "api/autonomous/sessions/:id/events", Scope::read, get_events,
          "after before limit kind"},
    Route{Method::get, "api/autonomous/sessions/:id/transitions", Scope::read, get_transitions,
          "after limit"},
    Route{Method::get, "api/autonomous/sessions/:id/bundle", Scope::read, get_bundle, "git"},
    Route{Method::post, "api/autonomous/sessions/:id/cancel", Scope::act, cancel_session, "",
          AuditAction::cancel},
    Route{Method::post, "api/autonomous/sessions/:id/answer", Scope::act, answer_question, "",
          AuditAction::answer},
    Route{Method::get, "api/autonomous/sessions", Scope::read, list_sessions, session_parameters},
    Route{Method::get, "api/autonomous/summary", Scope::read, get_summary},
    Route{Method::get, "api/activity", Scope::read, get_activity,
          "session label agent ancestor is not until timeoutMs"},
    Route{Method::get, "api/autonomous/history", Scope::read, get_history, "minutes"},
    Route{Method::get, "api/autonomous/sessions/:id/stream", Scope::read, stream_session,
          "include after"},
    Route{Method::get, "api/autonomous/sessions/:id/wait", Scope::read, wait_for_session,
          "for onStuck onSuspect onQuiet furtherMax after cursor tell timeoutMs"},
    Route{Method::get, "api/autonomous/stream", Scope::read, stream_all, "include after"},
    Route{Method::post, "api/hooks/:id", Scope::report, post_hook, "session pid event hold"},
    Route{Method::post, "v1/logs", Scope::report, post_logs, "*", {}, full_for_otlp},
    Route{Method::post, "v1/traces", Scope::report, post_traces, "*", {}, full_for_otlp},
    Route{Method::post, "v1/metrics", Scope::report, post_metrics, "*", {}, full_for_otlp},
    Route{Method::get, "api/autonomous/traces/:id", Scope::report, get_trace},
    Route{Method::post, "mcp", Scope::read, serve_mcp, "", {}, full_store, Scope::report},
    Route{Method::get, "mcp", Scope::read, serve_mcp, "", {}, full_store, Scope::report},
    Route{Method::del, "mcp", Scope::read, serve_mcp, "", {}, full_store, Scope::report},
    Route{Method::get, "api/turns/active", Scope::read, list_turns, "limit"},
    Route{Method::post, "api/turns/:id/abort", Scope::act, abort_turn, "", AuditAction::abort},
    Route{Method::post, "api/turns/:id/abort-tool/:tool", Scope::act, abort_turn, "",
          AuditAction::abort_tool},
    Route{Method::get, "api/alerts", Scope::read, list_alerts, "sessionId state after limit"},
    Route{Method::post, "api/alerts/:id/acknowledge", Scope::act, acknowledge_alert, "",
          AuditAction::acknowledge},
    Route{Method::post, "api/alerts/:id/snooze", Scope::act, snooze_alert, "", AuditAction::snooze},
    Route{Method::post, "api/alerts/channels/:id/test", Scope::act, test_channel, "",
          AuditAction::test_channel},
    // The link itself is the permission.
    Route{Method::get, "answer/:id", anybody, get_answer, "*"},
    Route{Method::post, "answer/:id", anybody, post_answer, "*"},
    Route{Method::post, "api/autonomous/check-status", Scope::report, post_check},
    Route{Method::get, "api/autonomous/check-status/:id", Scope::read, get_check},
    Route{Method::get, "api/access", anybody, get_access},
    Route{Method::post, "api/login", anybody, post_login},
    Route{Method::post, "api/logout", anybody, post_logout},
    Route{Method::get, "api/audit", Scope::act, list_audit, "sessionId after limit"},
    Route{Method::get, "api/recovery", Scope::read, get_recovery},
    Route{Method::post, "api/recovery/pause", Scope::act, pause_recovery, "",
          AuditAction::pause_recovery},
    Route{Method::post, "api/recovery/resume", Scope::act, resume_recovery, "",
          AuditAction::resume_recovery},
    Route{Method::get, "login", anybody, get_login_page, "*"},
    Route{Method::post, "login", anybody, post_login_form, "*"},
    Route{Method::post, "api/autonomous/sessions/:id/forget", Scope::act, forget_session, "",
          AuditAction::forget},
    Route{Method::post, "api/autonomous/forget", Scope::act, forget_sessions, "",
          AuditAction::forget},
    Route{Method::get, "metrics", Scope::read, get_metrics, "*"},
    Route{Method::get, "healthz", anybody, get_healthz, "*"},
    Route{Method::get, "readyz", Scope::read, get_readyz, "*"},
    Route{Method::get, "assets/:id/:tool", anybody, get_asset, "*"},
    Route{Method::get, "schemas/:id", anybody, get_schema, "*"},
    Route{Method::get, "sessions/:id", Scope::read, get_session_page, "*"},
    Route{Method::get, "alerts", Scope::read, get_alerts_page, "*"},
    Route{Method::get, "overview", Scope::read, get_overview_page, "*"},
    Route{Method::get, "", Scope::read, get_sessions_page, "*"}};

/// Returns true if the path is the route's; sets `id` and `tool`.
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
    case Method::del:
      return "DELETE";
    default:
      return "HEAD";
  }
}

Method asked(Method method) {
  return method == Method::head ? Method::get : method;
}

/// The result of a look-up of a path.
struct Found {
  const Route* route = nullptr;  ///< Null: nothing, or nothing by this method.
  std::string allowed;           ///< Then: the methods that it takes; empty: none.
  std::string id;
  std::string tool;
};

Found find(const Target& target, Method method) {
  Found found;
  for (const auto& route : routes) {
    if (!matches(route.path, target.segments, found.id, found.tool)) continue;
    if (route.method == method) {
      found.route = &route;
      break;
    }
    found.allowed.append(found.allowed.empty() ? "" : ", ").append(word_of(route.method));
  }
  return found;
}

/// The refusal of a parameter that the route does not have. A typing error in a filter would be
/// answered with what was not asked for.
std::optional<Error> unknown_parameter(const Route& route, const Target& target) {
  if (route.query == "*") return std::nullopt;
  std::vector<std::string> known;
  for (auto rest = route.query; !rest.empty();) {
    known.emplace_back(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(known.back().size() + 1, rest.size()));
  }
  for (const auto& name : target.names()) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return Error{
        ErrorCode::malformed,
        known.empty() ? "this path has no parameters" : unknown_word("parameter", name, known),
        name};
  }
  return std::nullopt;
}

bool is_in(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// True if a person's browser asks for a page, not a program for an answer.
bool wants_page(const Request& request) {
  const bool is_api = request.target.starts_with("/api/");
  return !is_api && request.accept.find("text/html") != std::string::npos;
}

/// Of a body, without a token where one is needed for everything else.
constexpr std::size_t stranger_bytes_max = 4'096;

AuditEntry entry_of(const Found& found, const Caller& caller, std::string peer) {
  AuditEntry entry{
      .actor = caller.name, .peer = std::move(peer), .action = found.route->act.value()};
  // Not even the name of an erased session is kept.
  if (entry.action != AuditAction::forget) {
    entry.target = found.tool.empty() ? found.id : found.id + "/" + found.tool;
  }
  return entry;
}

}  // namespace

std::shared_ptr<Recovery> Api::no_rules() {
  return std::make_shared<Recovery>();
}

std::optional<Response> Api::refuse(const Request& request) {
  // Any client that can connect may check that it lives, by any host name.
  if (request.target == "/healthz") return std::nullopt;
  auto refusal = refuse_by_headers(request);
  if (refusal) keep_refusal(request, *refusal);
  return refusal;
}

/// Acts that were refused before anything was looked up are in the trail as well.
void Api::keep_refusal(const Request& request, const Response& refusal) {
  if (refusal.status != 401 && refusal.status != 403) return;
  const auto target = Target::parse(request.target);
  if (!target) return;
  const auto found = find(*target, asked(request.method));
  if (found.route == nullptr || !found.route->act || !access_.admits_refused_act(request)) return;
  keep_and_reply(backend_,
                 entry_of(found, access_.caller(request), access_.policy()->peer(request)),
                 {.status = refusal.status}, [](const Response&) {});
}

std::optional<Response> Api::refuse_by_headers(const Request& request) {
  if (auto refusal = access_.refuse(request)) return refusal;
  if (!access_.policy()->without_token.empty()) return std::nullopt;
  // A request that needs a token is refused before its body is read.
  const auto caller = access_.caller(request);
  if (caller.known) return std::nullopt;
  const auto target = Target::parse(request.target);
  if (!target) return error_response(target.error());
  const auto found = find(*target, asked(request.method));
  const auto scope = found.route == nullptr ? Scope::read : found.route->scope_for(caller);
  if (auto refusal = access_.refuse(request, caller, scope)) {
    const bool for_people = target->segments.empty() || wants_page(request) ||
                            is_in(target->segments.front(), {"sessions", "alerts", "overview"});
    return for_people && refusal->status == 401 ? login_page(*refusal) : refusal;
  }
  if (request.body_bytes <= stranger_bytes_max) return std::nullopt;
  return error_response(
      413, "exhausted",
      "without a token a body may have at most " + std::to_string(stranger_bytes_max) + " bytes");
}

void Api::handle(Request request, Reply reply) {
  auto target = Target::parse(request.target);
  if (!target) return reply(error_response(target.error()));
  auto found = find(*target, asked(request.method));
  if (found.route == nullptr && found.allowed.empty()) {
    if (wants_page(request))
      return reply(notice_page(404, "Page not found", "There is no page at " + request.target));
    return reply(error_response(404, "not_found", "there is nothing at " + request.target));
  }
  if (found.route == nullptr) {
    auto response = error_response(405, "refused", "this path takes " + found.allowed);
    response.extra_headers = "Allow: " + found.allowed + "\r\n";
    return reply(std::move(response));
  }
  const auto& route = *found.route;
  auto caller = access_.caller(request);
  auto refusal = access_.refuse(request, caller, route.scope_for(caller));
  if (refusal && !caller.known) {
    keep_refusal(request, *refusal);
    return reply(std::move(*refusal));
  }
  if (route.act) {
    auto entry = entry_of(found, caller, access_.policy()->peer(request));
    reply = [&backend = backend_, entry = std::move(entry), reply](Response response) {
      keep_and_reply(backend, entry, std::move(response), reply);
    };
  }
  if (refusal) return reply(std::move(*refusal));
  if (const auto error = unknown_parameter(route, *target)) return reply(error_response(*error));
  if (route.scope == Scope::report && !backend_.has_room()) return reply(route.full(request));
  route.answer(std::make_shared<Call>(Call{backend_,
                                           check_service_,
                                           access_,
                                           std::move(request),
                                           std::move(*target),
                                           std::move(found.id),
                                           std::move(found.tool),
                                           std::move(caller.name),
                                           caller.scopes,
                                           caller.unchecked,
                                           std::move(reply),
                                           feed_,
                                           &hints_,
                                           telemetry_.get(),
                                           links_,
                                           proxy_url_,
                                           mcp_,
                                           note_transcript_,
                                           fresh_starts_,
                                           *recovery_,
                                           bundles_}));
}

}  // namespace watchdog::monitor
