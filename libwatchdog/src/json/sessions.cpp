#include "json/fields.h"
#include "watchdog/json.h"
#include "watchdog/json_writer.h"

namespace watchdog {
namespace {

using nlohmann::json;

PolicyPatch read_patch(Fields& fields) {
  PolicyPatch patch;
  const auto millis = [&](std::string_view name, std::optional<Millis>& into) {
    std::optional<std::int64_t> number;
    fields.integer(name, number);
    if (number) into = Millis{*number};
  };
  millis("heartbeatInterval", patch.heartbeat_interval);
  fields.integer("stuckThreshold", patch.stuck_threshold);
  fields.integer("silenceIntervals", patch.silence_intervals);
  millis("callIdleMax", patch.call_idle_max);
  fields.flag("enableConcurrentChecks", patch.concurrent_checks);
  return patch;
}

std::map<std::string, std::string> read_labels(Fields& fields) {
  std::map<std::string, std::string> labels;
  const auto* object = fields.find("labels");
  if (object == nullptr) return labels;
  if (!object->is_object()) {
    fields.fail(ErrorCode::malformed, "labels", "must be an object of strings");
    return labels;
  }
  for (const auto& [key, value] : object->items()) {
    if (value.is_string()) {
      labels[key] = value.get<std::string>();
    } else {
      fields.fail(ErrorCode::malformed, "labels", "must hold strings, " + key + " is none");
    }
  }
  return labels;
}

}  // namespace

Result<PolicyPatch> policy_patch_from_json(std::string_view object) {
  auto parsed = parse_object(object);
  if (!parsed) return parsed.error();
  Fields fields(*parsed);
  auto patch = read_patch(fields);
  if (fields.error()) return *fields.error();
  if (auto allowed = check(patch); !allowed) return allowed.error();
  return patch;
}

Result<PolicyPatch> policy_member_from_json(std::string_view body) {
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  const auto* policy = Fields(*parsed).find("policy");
  if (policy == nullptr || !policy->is_object()) {
    return Error{ErrorCode::malformed, "policy must be an object of thresholds", "policy"};
  }
  return policy_patch_from_json(policy->dump());
}

Result<SessionSpec> session_spec_from_json(std::string_view body, std::string& session_id) {
  auto parsed = body.find_first_not_of(" \t\r\n") == std::string_view::npos
                    ? Result<json>(json::object())
                    : parse_object(body);
  if (!parsed) return parsed.error();
  Fields fields(*parsed);
  SessionSpec spec;
  fields.text("sessionId", session_id, event_bytes_max);
  fields.text("parentSessionId", spec.parent, event_bytes_max);
  fields.text("agent", spec.agent, event_bytes_max);
  fields.text("task", spec.task, event_bytes_max);
  spec.labels = read_labels(fields);
  std::optional<ContentLevel> content;
  fields.choice("content", content);
  spec.content = content.value_or(ContentLevel::preview);

  const auto process = read_process(fields, "startTicks", "bootId");
  if (process.pid > 0) spec.process = process;

  if (fields.error()) return *fields.error();
  if (const auto* policy = fields.find("policy")) {
    if (!policy->is_object()) {
      return Error{ErrorCode::malformed, "policy must be an object", "policy"};
    }
    Fields thresholds(*policy);
    spec.policy = read_patch(thresholds);
    if (thresholds.error()) return *thresholds.error();
  }
  if (auto allowed = check(spec); !allowed) return allowed.error();
  return spec;
}

std::string to_json(const PolicyPatch& patch) {
  JsonWriter out;
  out.open_object();
  const auto millis = [&](std::string_view name, const std::optional<Millis>& value) {
    if (value) out.field(name, value->count());
  };
  millis("heartbeatInterval", patch.heartbeat_interval);
  if (patch.stuck_threshold) out.field("stuckThreshold", *patch.stuck_threshold);
  if (patch.silence_intervals) out.field("silenceIntervals", *patch.silence_intervals);
  millis("callIdleMax", patch.call_idle_max);
  if (patch.concurrent_checks) out.field("enableConcurrentChecks", *patch.concurrent_checks);
  out.close_object();
  return out.take();
}

std::string to_json(const Policy& policy) {
  return to_json(PolicyPatch{.heartbeat_interval = policy.heartbeat_interval,
                             .stuck_threshold = policy.stuck_threshold,
                             .silence_intervals = policy.silence_intervals,
                             .call_idle_max = policy.call_idle_max,
                             .concurrent_checks = policy.concurrent_checks});
}

std::string to_json(const SessionSpec& spec) {
  JsonWriter out;
  out.open_object();
  const auto text = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out.field(name, value);
  };
  text("parentSessionId", spec.parent);
  text("agent", spec.agent);
  text("task", spec.task);
  if (!spec.labels.empty()) {
    out.key("labels").open_object();
    for (const auto& [key, value] : spec.labels) out.field(key, value);
    out.close_object();
  }
  if (spec.policy != PolicyPatch{}) out.key("policy").raw(to_json(spec.policy));
  if (spec.content != ContentLevel::preview) out.field("content", name_of(spec.content));
  out.close_object();
  return out.take();
}

Result<std::string> text_field_from_json(std::string_view body, std::string_view field) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::string{};
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  Fields fields(*parsed);
  std::string text;
  fields.text(field, text, 4'096);
  if (fields.error()) return *fields.error();
  return text;
}

}  // namespace watchdog
