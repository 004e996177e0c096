#include <utility>

#include "api/mcp_handler.h"
#include "api/routes.h"

namespace watchdog::monitor {

void serve_mcp(const CallPtr& call) {
  const auto& origin = call->request.origin;
  const bool is_own =
      origin == "http://" + call->request.host || origin == "https://" + call->request.host;
  if (!origin.empty() && !is_own)
    return call->reply(error_response(403, "refused", "pages of other sites may not ask here"));
  if (call->mcp == nullptr)
    return call->reply(error_response(503, "unavailable", "only a running monitor serves /mcp"));
  const auto scope = call->scopes.contains(Scope::read) ? Scope::read : Scope::report;
  auto allowed = call->access.lasting(call->request, scope);
  call->mcp->answer(
      {.http = std::move(call->request), .caller = call->actor, .allowed = std::move(allowed)},
      call->reply);
}

}  // namespace watchdog::monitor
