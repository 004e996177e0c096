#include "api/api.h"

#include <array>
#include <memory>
#include <utility>

#include "api/login_page.h"
#include "api/routes.h"

namespace watchdog::monitor {
namespace {

/// Alerts that did not reach anybody for so long are a trouble of their own.
constexpr Millis unsent_max{60'000};

void get_healthz(const CallPtr& call) {
  const auto now = call->backend.now();
  for (const auto& channel : call->backend.channels()) {
    if (!channel.unsent_since || now - *channel.unsent_since <= unsent_max) continue;
    return call->reply(error_response(
        {ErrorCode::unavailable,
         "alerts do not reach channel " + channel.name + ": the oldest one waits for " +
             std::to_string((now - *channel.unsent_since).count() / 1'000) + " s"}));
  }
  call->reply({.body = R"({"status":"ok"})"});
}

void get_readyz(const CallPtr& call) {
  const auto trouble = call->backend.trouble();
  if (trouble) return call->reply(error_response(*trouble));
  call->reply({.body = R"({"status":"ready"})"});
}

struct Route {
  Method method;
  std::string_view path;  ///< `:id` stands for a session, check, turn, agent or folder; `:tool` for
                          ///< what is in it.
  std::optional<Scope> scope;  ///< What a caller needs; empty: nothing.
  void (*answer)(const CallPtr&);
  std::optional<AuditAction> act{};  ///< How the trail calls it; empty: it is not in there.
};

constexpr auto anybody = std::optional<Scope>{};
constexpr std::array routes{
    Route{Method::get, "api/autonomous/progress/:id", Scope::read, get_progress},
    Route{Method::get, "api/autonomous/progress", Scope::read, list_progress},
    Route{Method::get, "api/chat/autonomous/status", Scope::read, get_status},
    Route{Method::post, "api/autonomous/sessions", Scope::report, create_session},
    Route{Method::patch, "api/autonomous/sessions/:id", Scope::report, patch_session},
    Route{Method::post, "api/autonomous/sessions/:id/events", Scope::report, post_events},
    Route{Method::get, "api/autonomous/sessions/:id/events", Scope::read, get_events},
    Route{Method::get, "api/autonomous/sessions/:id/transitions", Scope::read, get_transitions},
    Route{Method::post, "api/autonomous/sessions/:id/cancel", Scope::act, cancel_session,
          AuditAction::cancel},
    Route{Method::get, "api/autonomous/sessions", Scope::read, list_sessions},
    Route{Method::get, "api/autonomous/sessions/:id/stream", Scope::read, stream_session},
    Route{Method::get, "api/autonomous/stream", Scope::read, stream_all},
    Route{Method::post, "api/hooks/:id", Scope::report, post_hook},
    Route{Method::get, "api/turns/active", Scope::read, list_turns},
    Route{Method::post, "api/turns/:id/abort", Scope::act, abort_turn, AuditAction::abort},
    Route{Method::post, "api/turns/:id/abort-tool/:tool", Scope::act, abort_turn,
          AuditAction::abort_tool},
    Route{Method::get, "api/alerts", Scope::read, list_alerts},
    Route{Method::post, "api/alerts/:id/acknowledge", Scope::act, acknowledge_alert,
          AuditAction::acknowledge},
    Route{Method::post, "api/alerts/:id/snooze", Scope::act, snooze_alert, AuditAction::snooze},
    Route{Method::post, "api/autonomous/check-status", Scope::report, post_check},
    Route{Method::get, "api/autonomous/check-status/:id", Scope::read, get_check},
    Route{Method::get, "api/access", anybody, get_access},
    Route{Method::post, "api/login", anybody, post_login},
    Route{Method::post, "api/logout", anybody, post_logout},
    Route{Method::get, "api/audit", Scope::act, list_audit},
    Route{Method::get, "login", anybody, get_login_page},
    Route{Method::post, "login", anybody, post_login_form},
    Route{Method::post, "api/autonomous/sessions/:id/forget", Scope::act, forget_session,
          AuditAction::forget},
    Route{Method::post, "api/autonomous/forget", Scope::act, forget_sessions, AuditAction::forget},
    Route{Method::get, "metrics", Scope::read, get_metrics},
    Route{Method::get, "healthz", anybody, get_healthz},
    Route{Method::get, "readyz", Scope::read, get_readyz},
    Route{Method::get, "assets/:id/:tool", anybody, get_asset},
    Route{Method::get, "sessions/:id", Scope::read, get_session_page},
    Route{Method::get, "", Scope::read, get_sessions_page}};

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

Method asked(Method method) {
  return method == Method::head ? Method::get : method;
}

/// What a path leads to.
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

/// Of a body, without a token where one is needed for everything else.
constexpr std::size_t stranger_bytes_max = 4'096;

}  // namespace

std::optional<Response> Api::refuse(const Request& request) {
  // Whether it lives may be asked by anybody who can reach it, by whatever name.
  if (request.target == "/healthz") return std::nullopt;
  if (auto refusal = access_.refuse(request)) return refusal;
  if (!access_.gate().without_token.empty()) return std::nullopt;
  // What nobody may without a token is refused before its body is read.
  const auto caller = access_.caller(request);
  if (caller.known) return std::nullopt;
  const auto target = Target::parse(request.target);
  if (!target) return error_response(target.error());
  const auto found = find(*target, asked(request.method));
  const auto scope = found.route == nullptr ? Scope::read : found.route->scope;
  if (auto refusal = access_.refuse(request, caller, scope)) {
    const bool for_people = target->segments.empty() || target->segments.front() == "sessions";
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
    return reply(error_response(404, "not_found", "there is nothing at " + request.target));
  }
  if (found.route == nullptr) {
    auto response = error_response(405, "refused", "this path takes " + found.allowed);
    response.extra_headers = "Allow: " + found.allowed + "\r\n";
    return reply(std::move(response));
  }
  const auto& route = *found.route;
  auto caller = access_.caller(request);
  auto refusal = access_.refuse(request, caller, route.scope);
  if (refusal && !caller.known) return reply(std::move(*refusal));
  if (route.act) {
    AuditEntry entry{
        .actor = caller.name, .peer = access_.gate().peer(request), .action = *route.act};
    // Of what is to be forgotten not even the name is kept.
    if (*route.act != AuditAction::forget) {
      entry.target = found.tool.empty() ? found.id : found.id + "/" + found.tool;
    }
    reply = [&backend = backend_, entry = std::move(entry), reply](Response response) {
      keep_and_reply(backend, entry, std::move(response), reply);
    };
  }
  if (refusal) return reply(std::move(*refusal));
  route.answer(std::make_shared<Call>(
      Call{backend_, desk_, access_, std::move(request), std::move(*target), std::move(found.id),
           std::move(found.tool), std::move(caller.name), caller.scopes, std::move(reply), feed_}));
}

}  // namespace watchdog::monitor
