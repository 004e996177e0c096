/// \file
/// The APIs of model servers, as far as passing their requests on depends on them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// `other`: passed through, and nothing else.
enum class ModelApi : std::uint8_t {
  other,
  openai_chat,
  openai_completions,
  openai_responses,
  openai_embeddings,
  anthropic_messages,
  ollama_chat,
  ollama_generate,
  llama_completion,
  gemini
};

/// By method and path, with or without `/v1`; a query does not matter.
[[nodiscard]] ModelApi api_of(std::string_view method, std::string_view target) noexcept;
/// A server's own way to generate, which the proxy does not read.
struct UnreadApi {
  std::string_view path;
  std::string_view server;
};
/// Returns the one that a request uses; null: another request. It lives for ever.
[[nodiscard]] const UnreadApi* unread_api_of(std::string_view method,
                                             std::string_view target) noexcept;
/// Returns what to say of it, for people.
[[nodiscard]] std::string words_of(const UnreadApi& api);
/// The Gemini API says in the path, not in the body, that it streams, and from which model. A
/// stream without `alt=sse` is one JSON array, which counts as an answer in one piece.
[[nodiscard]] bool streams_by_target(ModelApi api, std::string_view target) noexcept;
[[nodiscard]] std::string_view model_in_target(ModelApi api, std::string_view target) noexcept;

/// Something is generated, which may take as long as it takes.
[[nodiscard]] constexpr bool generates(ModelApi api) noexcept {
  return api != ModelApi::other && api != ModelApi::openai_embeddings;
}
/// Streams are lines of JSON there; elsewhere server-sent events.
[[nodiscard]] constexpr bool streams_lines(ModelApi api) noexcept {
  return api == ModelApi::ollama_chat || api == ModelApi::ollama_generate;
}

/// An error of ours as a whole body, in the form that the API's clients read.
[[nodiscard]] std::string error_body(ModelApi api, int status, std::string_view type,
                                     std::string_view message);
/// The same within a stream that has begun. `error`: such a body, or what the server itself said.
[[nodiscard]] std::string error_in_stream(ModelApi api, std::string_view error);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::ModelApi> {
  static constexpr std::string_view all[] = {
      "other",    "chat completions", "completions",     "responses",  "embeddings",
      "messages", "ollama chat",      "ollama generate", "completion", "generate content"};
};
}  // namespace watchdog
