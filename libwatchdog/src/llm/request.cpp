#include "llm/request.h"

#include <algorithm>
#include <array>

#include "codec/json.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

constexpr int alternatives = 5;  // of each token, with their probabilities

void write(JsonWriter& json, const ChatMessage& message) {
  json.open_object().field("role", message.role).field("content", message.content);
  if (!message.tool_calls.empty()) {
    json.key("tool_calls").open_array();
    for (const ToolRequest& call : message.tool_calls) {
      json.open_object().field("id", call.id).field("type", "function");
      json.key("function").open_object().field("name", call.name);
      json.field("arguments", call.arguments).close_object().close_object();
    }
    json.close_array();
  }
  if (!message.tool_call_id.empty()) json.field("tool_call_id", message.tool_call_id);
  json.close_object();
}

void write_thinking_off(JsonWriter& json, ServerKind server) {
  if (server == ServerKind::ollama) json.field("reasoning_effort", "none");
  if (server == ServerKind::llama_cpp || server == ServerKind::vllm) {
    json.key("chat_template_kwargs").open_object().field("enable_thinking", false).close_object();
  }
}

/// Writes fields that a server may not know, and that can be left out.
void write_extras(JsonWriter& json, const ChatRequest& request, const RequestShape& shape) {
  if (shape.stream) {
    json.key("stream_options").open_object().field("include_usage", true).close_object();
    if (shape.server == ServerKind::llama_cpp) json.field("return_progress", true);
  }
  if (!request.schema.empty()) {
    json.key("response_format").open_object().field("type", "json_schema");
    json.key("json_schema").open_object().field("name", "answer");
    json.key("schema").raw(request.schema).field("strict", true).close_object().close_object();
  }
  if (request.probabilities) json.field("logprobs", true).field("top_logprobs", alternatives);
  if (!request.thinking) write_thinking_off(json, shape.server);
}

constexpr std::array<std::string_view, 9> extra_fields = {
    "stream_options", "include_usage",    "return_progress",      "response_format", "json_schema",
    "logprobs",       "reasoning_effort", "chat_template_kwargs", "enable_thinking"};

}  // namespace

std::string to_json(const ChatRequest& request, const RequestShape& shape) {
  JsonWriter json;
  json.open_object();
  json.field("model", request.model.empty() ? shape.model : std::string_view(request.model));
  json.key("messages").open_array();
  for (const ChatMessage& message : request.messages) write(json, message);
  json.close_array();
  if (!request.tools.empty()) json.key("tools").raw(request.tools);
  json.field("stream", shape.stream);
  if (request.output_tokens_max) {
    json.field(shape.newer_limit ? "max_completion_tokens" : "max_tokens",
               *request.output_tokens_max);
  }
  if (request.temperature && shape.sampling) json.field("temperature", *request.temperature);
  if (request.seed && shape.sampling) json.field("seed", *request.seed);
  if (request.slot && shape.server == ServerKind::llama_cpp) json.field("id_slot", *request.slot);
  if (shape.extras) write_extras(json, request, shape);
  json.close_object();
  return json.finish();
}

std::string_view wrong_field(const ChatRequest& request) {
  if (!request.tools.empty() && !is_json(request.tools)) return "tools";
  if (!request.schema.empty() && !is_json(request.schema)) return "schema";
  return {};
}

std::optional<RequestShape> plainer(const RequestShape& shape, std::string_view sent, int status,
                                    std::string_view refusal) {
  if (status != 400 && status != 422) return std::nullopt;
  const auto was_sent = [&](std::string_view field) {
    return sent.find('"' + std::string(field) + '"') != std::string_view::npos;
  };
  const auto named = [&](std::string_view field) {
    return refusal.find(field) != std::string_view::npos && was_sent(field);
  };
  RequestShape other = shape;
  if (named("temperature") || named("seed")) {
    other.sampling = false;
    return other;
  }
  if (named("max_tokens") && refusal.find("max_completion_tokens") != std::string_view::npos) {
    other.newer_limit = true;
    return other;
  }
  if (!shape.extras || !std::ranges::any_of(extra_fields, named)) return std::nullopt;
  other.extras = false;
  return other;
}

}  // namespace watchdog
