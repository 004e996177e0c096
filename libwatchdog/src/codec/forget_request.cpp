#include "codec/forget_request.h"

#include <algorithm>

#include "codec/fields.h"

namespace watchdog {

Result<ForgetRequest> forget_request_from_json(std::string_view body) {
  const auto object = parse_object(body.empty() ? "{}" : body);
  if (!object) return object.error();
  Fields fields(*object);
  ForgetRequest request;
  std::optional<bool> force, dry_run;
  std::optional<std::int64_t> ended_before;
  fields.flag("force", force);
  fields.flag("dryRun", dry_run);
  fields.integer("endedBefore", ended_before);
  if (const auto* sessions = fields.find("sessions")) {
    const auto is_text = [](const auto& id) { return id.is_string(); };
    if (sessions->is_array() && std::ranges::all_of(*sessions, is_text)) {
      request.sessions = sessions->get<std::vector<std::string>>();
    } else {
      fields.fail(ErrorCode::malformed, "sessions", "must be a list of session ids");
    }
  }
  if (fields.error()) return *fields.error();
  request.force = force.value_or(false);
  request.dry_run = dry_run.value_or(false);
  if (ended_before) request.ended_before = WallTime{Millis{*ended_before}};
  return request;
}

}  // namespace watchdog
