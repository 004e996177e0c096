#include <utility>

#include "api/routes.h"
#include "ingest/hooks.h"
#include "watchdog/ids.h"

namespace watchdog::monitor {
namespace {

/// What agents take for an answer of their hook: to go on, or to stop and why.
Response hook_answer(const Directive& directive) {
  JsonWriter out;
  out.open_object();
  if (directive.cancel) {
    const auto& cancel = *directive.cancel;
    out.field("continue", false);
    out.field("stopReason",
              "cancelled by " + cancel.by + (cancel.reason.empty() ? "" : ": " + cancel.reason));
  }
  out.close_object();
  return json_response(out);
}

}  // namespace

void post_hook(const CallPtr& call) {
  const auto agent = named<HookAgent>(call->id);
  if (!agent) {
    std::string known;
    for (const auto name : Names<HookAgent>::all) known.append(" ").append(name);
    return call->reply(error_response(
        {ErrorCode::not_found, "no hooks are known of " + call->id + ", but of" + known, "agent"}));
  }
  const auto session = call->target.text("session");
  if (!session.empty() && !is_session_id(session)) {
    return call->reply(error_response(
        {ErrorCode::invalid, "session must be 1 to 128 of A-Z a-z 0-9 . _ : @ -", "session"}));
  }
  auto event = hook_event(*agent, call->request.body, session);
  call->request.body = {};
  if (!event) return call->reply(error_response(event.error()));
  if (event->reports.empty()) return call->reply(hook_answer({}));
  call->backend.append(
      {.session = std::move(event->session),
       .creation = Creation::attach,
       .spec = std::move(event->spec),
       .reports = std::move(event->reports)},
      [call](Result<Receipt> receipt) {
        call->reply(receipt ? hook_answer(receipt->directive) : error_response(receipt.error()));
      });
}

}  // namespace watchdog::monitor
