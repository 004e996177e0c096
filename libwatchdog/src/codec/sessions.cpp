// `each_threshold` is the one list of scalar thresholds. Readers, writers and the names in errors
// all visit it, for patches and for whole policies. Reading takes the JSON apart first; `check`
// looks at ranges last. Only `policy_member_from_json` refuses unknown names, because a misspelt
// threshold would change nothing. A patch and a spec write only what was set; a policy writes
// everything.
#include <algorithm>

#include "codec/fields.h"
#include "codec/json.h"
#include "text/json_writer.h"
#include "text/nearest.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// Every scalar threshold with its name in JSON: the one table for reading and writing.
template <class Policies, class Visit>
void each_threshold(Policies& p, Visit&& visit) {
  visit("heartbeatInterval", p.heartbeat_interval);
  visit("stuckThreshold", p.stuck_threshold);
  visit("silenceIntervals", p.silence_intervals);
  visit("callIdleMax", p.call_idle_max);
  visit("enableConcurrentChecks", p.concurrent_checks);
  visit("usualInterval", p.usual_interval);
  visit("slowDeviations", p.slow_deviations);
  visit("suspectDeviations", p.suspect_deviations);
  visit("slowMin", p.slow_min);
  visit("suspectMin", p.suspect_min);
  visit("repeatedOf20", p.repeated_of_20);
  visit("recoveryChanges", p.recovery_changes);
}

struct ThresholdReader {
  Fields& fields;

  void operator()(const char* name, std::optional<Millis>& into) const {
    std::optional<std::int64_t> number;
    fields.integer(name, number);
    if (number) into = Millis{*number};
  }
  void operator()(const char* name, std::optional<std::int64_t>& into) const {
    fields.integer(name, into);
  }
  void operator()(const char* name, std::optional<bool>& into) const { fields.flag(name, into); }
  void operator()(const char* name, std::optional<double>& into) const {
    fields.number(name, into);
  }
};

/// The member `name` of the object, which must be an object itself; null where it is absent.
const json* object_in(Fields& fields, const char* name) {
  const auto* object = fields.find(name);
  if (object == nullptr || object->is_object()) return object;
  fields.fail(ErrorCode::malformed, name, "must be an object");
  return nullptr;
}

void read_patterns(Fields& fields, PolicyPatch& patch) {
  const auto* patterns = object_in(fields, "patterns");
  if (patterns == nullptr) return;
  for (const auto& [name, value] : patterns->items()) {
    const auto pattern = named<Pattern>(name);
    const auto path = "patterns." + name;
    if (!pattern) {
      fields.fail(ErrorCode::invalid, path, "is not a pattern; R1 to R15 are");
    } else if (!value.is_object()) {
      fields.fail(ErrorCode::malformed, path, "must be an object {suspect, stuck}");
    } else {
      Fields bounds(value);
      auto& own = patch.patterns[*pattern];
      bounds.number("suspect", own.suspect);
      bounds.number("stuck", own.stuck);
      if (bounds.error()) fields.fail(bounds.error()->code, path, bounds.error()->message);
    }
  }
}

void read_tools(Fields& fields, PolicyPatch& patch) {
  const auto* tools = object_in(fields, "tools");
  if (tools == nullptr) return;
  for (const auto& [name, value] : tools->items()) {
    const auto path = "tools." + name;
    if (!value.is_object()) {
      fields.fail(ErrorCode::malformed, path, "must be an object {use, identity}");
      continue;
    }
    Fields members(value);
    ToolRule& rule = patch.tools[name];
    std::optional<ToolUse> use;
    members.choice("use", use);
    rule.use = use.value_or(ToolUse::ordinary);
    if (members.error()) fields.fail(members.error()->code, path, members.error()->message);
    const auto* identity = members.find("identity");
    if (identity == nullptr) continue;
    const bool texts = identity->is_array() &&
                       std::all_of(identity->begin(), identity->end(), [](const json& item) {
                         return item.is_string() && item.get_ref<const std::string&>().size() <= 64;
                       });
    if (texts) {
      rule.identity = identity->get<std::vector<std::string>>();
    } else {
      fields.fail(ErrorCode::malformed, path + ".identity",
                  "must be an array of names of at most 64 bytes");
    }
  }
}

PolicyPatch read_patch(Fields& fields) {
  PolicyPatch patch;
  each_threshold(patch, ThresholdReader{fields});
  read_patterns(fields, patch);
  read_tools(fields, patch);
  return patch;
}

/// Returns the member names of a policy.
std::vector<std::string> names_in_policy() {
  std::vector<std::string> names;
  const PolicyPatch none;
  each_threshold(none, [&](const char* name, const auto&) { names.emplace_back(name); });
  names.insert(names.end(), {"patterns", "tools"});
  return names;
}

/// Writes what is set.
struct ThresholdWriter {
  JsonWriter& out;

  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (requires { value.has_value(); }) {
      if (value) (*this)(name, *value);
    } else if constexpr (std::is_same_v<T, Millis>) {
      out.field(name, value.count());
    } else {
      out.field(name, value);
    }
  }
};

void write_bounds(JsonWriter& out, Pattern pattern, const std::optional<double>& suspect,
                  const std::optional<double>& stuck) {
  out.key(name_of(pattern)).open_object();
  if (suspect) out.field("suspect", *suspect);
  if (stuck) out.field("stuck", *stuck);
  out.close_object();
}

void write_tools(JsonWriter& out, const std::map<std::string, ToolRule>& tools) {
  if (tools.empty()) return;
  out.key("tools").open_object();
  for (const auto& [name, rule] : tools) {
    out.key(name).open_object().field("use", name_of(rule.use));
    if (!rule.identity.empty()) {
      out.key("identity").open_array();
      for (const auto& field : rule.identity) out.value(field);
      out.close_array();
    }
    out.close_object();
  }
  out.close_object();
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
  const auto known = names_in_policy();
  const auto is_known = [&](const std::string& name) {
    return std::ranges::find(known, name) != known.end();
  };
  for (const auto& [name, value] : parsed->items()) {
    if (name == "policy") continue;
    return Error{ErrorCode::invalid,
                 is_known(name) ? name + " belongs into the object policy"
                                : unknown_word("field", name, {"policy"}),
                 name};
  }
  const auto* policy = Fields(*parsed).find("policy");
  if (policy == nullptr || !policy->is_object()) {
    return Error{ErrorCode::malformed, "policy must be an object of thresholds", "policy"};
  }
  for (const auto& [name, value] : policy->items()) {
    if (!is_known(name))
      return Error{ErrorCode::invalid, unknown_word("threshold", name, known), name};
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
  fields.text("title", spec.title, event_bytes_max);
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
  each_threshold(patch, ThresholdWriter{out});
  if (!patch.patterns.empty()) {
    out.key("patterns").open_object();
    for (const auto& [pattern, bounds] : patch.patterns) {
      write_bounds(out, pattern, bounds.suspect, bounds.stuck);
    }
    out.close_object();
  }
  write_tools(out, patch.tools);
  out.close_object();
  return out.finish();
}

std::string to_json(const Policy& policy) {
  JsonWriter out;
  out.open_object();
  each_threshold(policy, ThresholdWriter{out});
  out.key("patterns").open_object();
  for (std::size_t at = 0; at < pattern_count; ++at) {
    const auto pattern = static_cast<Pattern>(at);
    const auto& bounds = policy.patterns[at];
    if (is_repetition(pattern)) write_bounds(out, pattern, bounds.suspect, bounds.stuck);
  }
  out.close_object();
  write_tools(out, policy.tools);
  out.close_object();
  return out.finish();
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
  text("title", spec.title);
  if (!spec.labels.empty()) {
    out.key("labels").open_object();
    for (const auto& [key, value] : spec.labels) out.field(key, value);
    out.close_object();
  }
  if (spec.policy != PolicyPatch{}) out.key("policy").raw(to_json(spec.policy));
  if (spec.content != ContentLevel::preview) out.field("content", name_of(spec.content));
  out.close_object();
  return out.finish();
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

Result<std::optional<std::int64_t>> integer_field_from_json(std::string_view body,
                                                            std::string_view field) {
  std::optional<std::int64_t> number;
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return number;
  auto parsed = parse_object(body);
  if (!parsed) return parsed.error();
  Fields fields(*parsed);
  fields.integer(field, number);
  if (fields.error()) return *fields.error();
  return number;
}

}  // namespace watchdog
