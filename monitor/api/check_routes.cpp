#include "api/routes.h"
#include "codec/json.h"

namespace watchdog::monitor {
namespace {

Response check_response(const Check& check, int status = 200) {
  JsonWriter out;
  out.open_object().field("checkId", check.id).field("sessionId", check.session);
  out.field("state", name_of(check.state)).key("status");
  check.status == Verdict::none ? out.value(nullptr) : out.value(name_of(check.status));
  out.key("reason");
  check.reason.empty() ? out.value(nullptr) : out.value(check.reason);
  out.field("confidence", check.confidence).field("ts", check.at.time_since_epoch().count());
  out.close_object();
  return json_response(out, status);
}

}  // namespace

void post_check(const CallPtr& call) {
  const auto session = text_field_from_json(call->request.body, "sessionId");
  if (!session) return call->reply(error_response(session.error()));
  const auto check_id = text_field_from_json(call->request.body, "checkId");
  if (!check_id) return call->reply(error_response(check_id.error()));
  if (session->empty()) {
    return call->reply(error_response({ErrorCode::malformed, "sessionId is missing", "sessionId"}));
  }
  call->check_service.ask(*session, *check_id, [call](const Result<Check>& check) {
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
  call->check_service.find(call->id, [call](const Result<Check>& check) {
    call->reply(check ? check_response(*check) : error_response(check.error()));
  });
}

}  // namespace watchdog::monitor
