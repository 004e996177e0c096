#include "proxy/model_api.h"

#include "watchdog/json_writer.h"

namespace watchdog::monitor {

ModelApi api_of(std::string_view method, std::string_view target) noexcept {
  if (method != "POST") return ModelApi::other;
  auto path = target.substr(0, target.find('?'));
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/chat/completions")) return ModelApi::openai_chat;
  if (path.ends_with("/completions")) return ModelApi::openai_completions;
  if (path.ends_with("/responses")) return ModelApi::openai_responses;
  if (path.ends_with("/embeddings") || path.ends_with("/api/embed"))
    return ModelApi::openai_embeddings;
  if (path.ends_with("/messages")) return ModelApi::anthropic_messages;
  if (path.ends_with("/api/chat")) return ModelApi::ollama_chat;
  if (path.ends_with("/api/generate")) return ModelApi::ollama_generate;
  if (path.ends_with("/completion")) return ModelApi::llama_completion;
  return ModelApi::other;
}

std::string error_body(ModelApi api, int status, std::string_view type, std::string_view message) {
  JsonWriter out;
  out.open_object();
  if (streams_lines(api)) return out.field("error", message).close_object().take();
  if (api == ModelApi::anthropic_messages) out.field("type", "error");
  out.key("error").open_object().field("message", message).field("type", type);
  if (api != ModelApi::anthropic_messages) out.field("code", status);
  return out.close_object().close_object().take();
}

std::string error_in_stream(ModelApi api, std::string_view error) {
  // What a server says may span lines; a line break would end the event.
  std::string line;
  line.reserve(error.size());
  for (const char c : error) {
    if (c != '\n' && c != '\r') line += c;
  }
  if (streams_lines(api)) return line + "\n";
  const std::string_view name =
      api == ModelApi::anthropic_messages || api == ModelApi::openai_responses ? "event: error\n"
                                                                               : "";
  return std::string(name) + "data: " + line + "\n\n";
}

}  // namespace watchdog::monitor
