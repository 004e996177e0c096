#include "proxy/connection/model_api.h"

#include <algorithm>

#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr UnreadApi unread_apis[] = {
    {"/api/v1/chat", "LM Studio"},
    {"/api/v1/generate", "KoboldCpp"},
    {"/api/extra/generate/stream", "KoboldCpp"},
    {"/generate", "TGI or SGLang"},
    {"/generate_stream", "TGI"},
};

std::string_view path_of(std::string_view target) noexcept {
  auto path = target.substr(0, target.find('?'));
  while (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

}  // namespace

ModelApi api_of(std::string_view method, std::string_view target) noexcept {
  if (method != "POST") return ModelApi::other;
  const auto path = path_of(target);
  if (path.ends_with("/chat/completions")) return ModelApi::openai_chat;
  if (path.ends_with("/completions")) return ModelApi::openai_completions;
  if (path.ends_with("/responses")) return ModelApi::openai_responses;
  if (path.ends_with("/embeddings") || path.ends_with("/api/embed"))
    return ModelApi::openai_embeddings;
  if (path.ends_with("/messages")) return ModelApi::anthropic_messages;
  if (path.ends_with("/api/chat")) return ModelApi::ollama_chat;
  if (path.ends_with("/api/generate")) return ModelApi::ollama_generate;
  if (path.ends_with("/completion")) return ModelApi::llama_completion;
  if (path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent"))
    return ModelApi::gemini;
  return ModelApi::other;
}

const UnreadApi* unread_api_of(std::string_view method, std::string_view target) noexcept {
  if (method != "POST") return nullptr;
  const auto* found = std::ranges::find_if(
      unread_apis, [path = path_of(target)](const auto& api) { return path == api.path; });
  return found == std::end(unread_apis) ? nullptr : found;
}

std::string words_of(const UnreadApi& api) {
  return "requests to " + std::string(api.path) + " of " + std::string(api.server) +
         " pass through unread: their prompts, answers and errors are not seen, and no keep-alive "
         "is sent. Set the client to the server's OpenAI API, /v1/chat/completions";
}

bool streams_by_target(ModelApi api, std::string_view target) noexcept {
  if (api != ModelApi::gemini) return false;
  const auto query = target.find('?');
  return target.substr(0, query).ends_with(":streamGenerateContent") &&
         query != std::string_view::npos && target.find("alt=sse", query) != std::string_view::npos;
}

std::string_view model_in_target(ModelApi api, std::string_view target) noexcept {
  if (api != ModelApi::gemini) return {};
  constexpr std::string_view models = "/models/";
  const auto path = target.substr(0, target.find('?'));
  const auto at = path.rfind(models);
  const auto colon = path.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return {};
  return path.substr(at + models.size(), colon - at - models.size());
}

namespace {

/// The word that Google's clients go by beside the number.
std::string_view google_status(int status) noexcept {
  switch (status) {
    case 502:
    case 503:
      return "UNAVAILABLE";
    case 504:
      return "DEADLINE_EXCEEDED";
    default:
      return status < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
  }
}

}  // namespace

std::string error_body(ModelApi api, int status, std::string_view type, std::string_view message) {
  JsonWriter out;
  out.open_object();
  if (streams_lines(api)) return out.field("error", message).close_object().finish();
  if (api == ModelApi::anthropic_messages) out.field("type", "error");
  out.key("error").open_object().field("message", message).field("type", type);
  if (api != ModelApi::anthropic_messages) out.field("code", status);
  if (api == ModelApi::gemini) out.field("status", google_status(status));
  return out.close_object().close_object().finish();
}

std::string error_in_stream(ModelApi api, std::string_view error) {
  // A server's text may span lines; a line break would end the event.
  std::string line;
  line.reserve(error.size());
  for (const char c : error) {
    if (c != '\n' && c != '\r') line += c;
  }
  if (streams_lines(api)) return line + "\n";
  // Google's clients take an error only from a line that is JSON itself, and pass over one in an
  // event.
  if (api == ModelApi::gemini) return line + "\n\n";
  const std::string_view name =
      api == ModelApi::anthropic_messages || api == ModelApi::openai_responses ? "event: error\n"
                                                                               : "";
  return std::string(name) + "data: " + line + "\n\n";
}

}  // namespace watchdog::monitor
