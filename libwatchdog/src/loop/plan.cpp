#include <nlohmann/json.hpp>
#include <utility>

#include "codec/fields.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"
#include "watchdog/run.h"

namespace watchdog {
namespace {

constexpr std::size_t simple_steps_max = 3;
constexpr std::size_t step_bytes_max = 2'000;

ChatRequest request_for(std::string_view task, std::string_view context, bool simple) {
  std::string instructions =
      simple ? "Make the simplest plan that could do for the user's task: at most " +
                   std::to_string(simple_steps_max) + " short steps."
             : "Make a plan for the user's task: the steps in order, at most " +
                   std::to_string(plan_steps_max) +
                   " of them, each one that can be carried out and checked.";
  instructions +=
      " Answer with a JSON object and nothing else: {\"steps\": [\"first step\", \"second step\"]}";
  std::string question(task);
  // The context may be what made the prompt too long.
  if (!context.empty() && !simple) question.append("\n\n").append(context);
  return {.messages = {{.role = "system", .content = std::move(instructions)},
                       {.role = "user", .content = std::move(question)}},
          .temperature = 0.0,
          .schema =
              R"({"type":"object","properties":{"steps":{"type":"array","minItems":1,)"
              R"("maxItems":)" +
              std::to_string(simple ? simple_steps_max : plan_steps_max) +
              R"(,"items":{"type":"string"}}},"required":["steps"],"additionalProperties":false})"};
}

/// The answer's object, also between words or in a fence.
std::string_view object_in(std::string_view text) {
  const auto first = text.find('{');
  const auto last = text.rfind('}');
  if (first == std::string_view::npos || last == std::string_view::npos || last < first) return {};
  return text.substr(first, last - first + 1);
}

Result<Plan, Failure> read_plan(const ChatAnswer& answer) {
  const auto none = [](std::string why) {
    return Failure{.reason = std::string(reasons::malformed_answer),
                   .message = "the model's answer holds no plan: " + std::move(why),
                   .recoverable = true};
  };
  const auto object = parse_object(object_in(answer.text));
  if (!object) return none(object.error().message);
  const auto steps = object->find("steps");
  if (steps == object->end() || !steps->is_array()) return none("there are no \"steps\"");
  Plan plan;
  for (const auto& step : *steps) {
    if (!step.is_string()) return none("a step is not a text");
    auto text = step.get<std::string>();
    if (text.empty() || text.size() > step_bytes_max) return none("a step is empty, or too long");
    if (plan.steps.size() == plan_steps_max) return none("there are too many steps");
    plan.steps.push_back(std::move(text));
  }
  if (plan.steps.empty()) return none("it has no step");
  return plan;
}

/// Returns whether a simpler question may get an answer after this failure.
bool simpler_may_help(const Failure& failure) {
  return failure.reason == reasons::malformed_answer ||
         failure.reason == reasons::connection_lost ||
         failure.reason == reasons::context_exceeded ||
         failure.reason == reasons::model_server_error;
}

Result<Plan, Failure> made(const Model& model, const ChatRequest& request,
                           const std::stop_token& stop) {
  const auto answer = model(request, {}, stop);
  return answer ? read_plan(*answer) : answer.error();
}

std::string data_of(const Plan& plan) {
  JsonWriter out;
  out.open_object().field("simplified", plan.simplified).key("steps").open_array();
  for (const auto& step : plan.steps) out.value(step);
  out.close_array().close_object();
  return out.finish();
}

}  // namespace

Result<Plan, Failure> plan(const Model& model, ProgressTracker& tracker, std::string_view task,
                           std::string_view context, const std::stop_token& stop) {
  tracker.heartbeat({.phase = "planning"});
  auto whole = made(model, request_for(task, context, false), stop);
  if (!whole && !stop.stop_requested() && simpler_may_help(whole.error())) {
    tracker.retry();
    tracker.heartbeat({.phase = "planning"});
    whole = made(model, request_for(task, context, true), stop);
    if (whole) whole.value().simplified = true;
  }
  if (whole) tracker.state_change("plan_generated", data_of(*whole));
  return whole;
}

}  // namespace watchdog
