#include "codec/fields.h"
#include "text/json_writer.h"
#include "watchdog/tool_runner.h"

namespace watchdog {
namespace {

/// "30 steps, 300 seconds"
std::string shown(const AgentLimits& limits, const TaskToolSettings& settings) {
  const auto timeout = limits.timeout.value_or(settings.default_timeout);
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(timeout).count();
  return (limits.steps ? std::to_string(*limits.steps) + " steps, " : "") +
         std::to_string(seconds) + " seconds";
}

std::string description_of(const TaskToolSettings& settings) {
  std::string text =
      "Gives a task to another agent, which works on it by itself in a session of its own, and "
      "returns its answer. The prompt is all that it knows: say what is wanted, where to look, and "
      "what the answer should contain.\nTypes of agents and their budgets:";
  for (const auto& [type, limits] : settings.agents) {
    text += " " + type + " (" + shown(limits, settings) + ")";
  }
  text +=
      ". Set max_steps or timeout_seconds where a task needs more or less; it never gets more "
      "than you have left yourself, and what it uses is taken from your own budget. One step is "
      "one answer of its model with its tool calls.\nThe agent sees its budget. When it runs low, "
      "the "
      "agent is asked to wrap up, and it answers with its last step. If its steps run out you get "
      "what it had so far, marked as partial. ";
  text += settings.thresholds.enforce_time
              ? "The same holds when its time runs out."
              : "When its time runs out it is advised to wrap up, but not cut off.";
  text +=
      "\nExample: {\"prompt\": \"Find where the configuration is read; answer with files and "
      "lines.\", \"agent_type\": \"" +
      (settings.agents.empty() ? std::string("explore") : settings.agents.begin()->first) +
      "\", \"max_steps\": 20}";
  return text;
}

void write_integer(JsonWriter& out, std::string_view name, const std::string& description,
                   std::int64_t min, std::int64_t max) {
  out.key(name).open_object().field("type", "integer").field("description", description);
  out.field("minimum", min).field("maximum", max).close_object();
}

std::optional<std::int64_t> read_integer(Fields& fields, std::string_view name, std::int64_t min,
                                         std::int64_t max) {
  std::optional<std::int64_t> value;
  fields.integer(name, value);
  if (value && (*value < min || *value > max)) {
    fields.fail(ErrorCode::invalid, name,
                "is " + std::to_string(*value) + "; it must be from " + std::to_string(min) +
                    " to " + std::to_string(max));
  }
  return value;
}

std::string types_of(const TaskToolSettings& settings) {
  std::string all;
  for (const auto& [type, limits] : settings.agents) all += (all.empty() ? "" : ", ") + type;
  return all;
}

}  // namespace

std::string task_tool_definition(const TaskToolSettings& settings) {
  JsonWriter out;
  out.open_object().field("type", "function").key("function").open_object();
  out.field("name", "task").field("description", description_of(settings));
  out.key("parameters").open_object().field("type", "object").key("properties").open_object();
  out.key("prompt").open_object().field("type", "string");
  out.field("description", "The task, complete in itself.").close_object();
  out.key("agent_type").open_object().field("type", "string");
  out.field("description", "The type of agent that works on it.").key("enum").open_array();
  for (const auto& [type, limits] : settings.agents) out.value(type);
  out.close_array().close_object();
  write_integer(out, "timeout_seconds", "How long it may take. Default: the agent's.",
                task_timeout_seconds_min, task_timeout_seconds_max);
  write_integer(out, "max_steps", "How many steps it may take. Default: the agent's.",
                task_steps_min, task_steps_max);
  out.close_object().key("required").open_array().value("prompt").value("agent_type");
  out.close_array().field("additionalProperties", false).close_object();
  out.close_object().close_object();
  return out.finish();
}

Result<TaskSpec> parse_task(std::string_view arguments, const TaskToolSettings& settings) {
  const auto parsed = parse_object(arguments);
  if (!parsed) return parsed.error();
  Fields fields(*parsed);
  TaskSpec task;
  const auto needed = [&](std::string_view name, std::string& into) {
    fields.text(name, into, SIZE_MAX);
    if (into.empty()) fields.fail(ErrorCode::malformed, name, "is missing or empty");
  };
  needed("prompt", task.prompt);
  needed("agent_type", task.agent_type);
  const auto seconds =
      read_integer(fields, "timeout_seconds", task_timeout_seconds_min, task_timeout_seconds_max);
  const auto steps = read_integer(fields, "max_steps", task_steps_min, task_steps_max);
  const auto agent = settings.agents.find(task.agent_type);
  if (agent == settings.agents.end()) {
    fields.fail(ErrorCode::invalid, "agent_type",
                "is \"" + task.agent_type + "\"; it must be one of " + types_of(settings));
  }
  if (fields.error()) return *fields.error();
  task.limits = agent->second;
  if (!task.limits.timeout) task.limits.timeout = settings.default_timeout;
  if (seconds) task.limits.timeout = std::chrono::seconds(*seconds);
  if (steps) task.limits.steps = steps;
  return task;
}

}  // namespace watchdog
