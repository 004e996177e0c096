#include <algorithm>
#include <utility>

#include "api/routes.h"
#include "codec/forget_request.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view remains_on_server =
    "The rows are deleted. The files of PostgreSQL hold their bytes until VACUUM frees the room "
    "and "
    "later rows overwrite it. The write-ahead log and backups hold them until you delete those.";

Erasure erasure_of(ForgetRequest request) {
  return {.sessions = std::move(request.sessions),
          .ended_before = request.ended_before,
          .running_too = request.force,
          .only_say = request.dry_run};
}

void remove_looks(Bundles& bundles, const std::vector<std::string>& erased) {
  if (!bundles.looks || erased.empty()) return;
  bundles.looks->remove_unless([&](const std::string& session) {
    return std::ranges::find(erased, session) == erased.end();
  });
}

void forget(const CallPtr& call, ForgetRequest request) {
  const bool forgotten = !request.dry_run;
  call->backend.erase(erasure_of(std::move(request)),
                      [call, forgotten](const Result<std::vector<std::string>>& erased) {
                        if (!erased) return call->reply(error_response(erased.error()));
                        if (forgotten) remove_looks(call->bundles, *erased);
                        JsonWriter out;
                        out.open_object().field("forgotten", forgotten).key("sessions");
                        out.open_array();
                        for (const auto& session : *erased) out.value(session);
                        out.close_array();
                        if (forgotten && !erased->empty() && call->backend.is_on_server())
                          out.field("remains", remains_on_server);
                        out.close_object();
                        call->reply(json_response(out));
                      });
}

}  // namespace

void forget_session(const CallPtr& call) {
  auto request = forget_request_from_json(call->request.body);
  if (!request) return call->reply(error_response(request.error()));
  request->sessions = {call->id};
  request->ended_before.reset();
  forget(call, std::move(*request));
}

void forget_sessions(const CallPtr& call) {
  auto request = forget_request_from_json(call->request.body);
  if (!request) return call->reply(error_response(request.error()));
  if (request->sessions.empty() && !request->ended_before) {
    return call->reply(error_response(
        {ErrorCode::malformed, "sessions or endedBefore must say which", "sessions"}));
  }
  forget(call, std::move(*request));
}

}  // namespace watchdog::monitor
