#include "api/api.h"

#include <array>
#include <memory>
#include <utility>

#include "api/explanation.h"
#include "api/page.h"
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
    Route{Method::get, "api/alerts", list_alerts},
    Route{Method::post, "api/alerts/:id/acknowledge", acknowledge_alert},
    Route{Method::post, "api/alerts/:id/snooze", snooze_alert},
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
