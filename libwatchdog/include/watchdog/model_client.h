/// \file
/// A model behind an OpenAI-compatible HTTP API: llama.cpp, Ollama, vLLM, or a service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "watchdog/model.h"
#include "watchdog/names.h"
#include "watchdog/result.h"

namespace watchdog {

/// The program of the server. `unknown`: only the API is relied on.
enum class ServerKind : std::uint8_t { unknown, llama_cpp, ollama, vllm };

template <>
struct Names<ServerKind> {
  static constexpr std::string_view all[] = {"unknown", "llama_cpp", "ollama", "vllm"};
};

/// Thread-safe: each running call has its own connection.
class ModelClient {
 public:
  struct Options {
    /// `http[s]://HOST[:PORT][/v1]`, like `OPENAI_BASE_URL`, with or without `/v1`. Required.
    std::string base_url{};
    std::string api_key{};            ///< Sent as a bearer token, never logged; empty: none.
    std::string model = "default";    ///< For requests without one.
    bool stream = true;               ///< False: the answer comes in one piece.
    std::filesystem::path ca_file{};  ///< More certificates to trust (PEM); empty: the system's.
    /// A larger answer is a failure (`malformed_answer`), and so is one with more values than such
    /// an answer needs. Bounds memory: reading an answer without streaming takes up to about six
    /// times as much, and 32 MiB.
    std::size_t answer_bytes_max = 64U << 20U;
    std::size_t idle_connections_max = 4;
  };

  /// Connects at the first request. Errors: `invalid` (the URL, the CA file).
  [[nodiscard]] static Result<ModelClient> to(Options options);
  ~ModelClient();
  ModelClient(ModelClient&&) noexcept;
  ModelClient& operator=(ModelClient&&) noexcept;
  ModelClient(const ModelClient&) = delete;
  ModelClient& operator=(const ModelClient&) = delete;

  /// Has no deadline. Closes the connection when `stop` is requested.
  [[nodiscard]] Result<ChatAnswer, Failure> chat(const ChatRequest& request,
                                                 const ChatSink& sink = {},
                                                 const std::stop_token& stop = {});
  /// Returns the client as a function. The client must outlive it.
  [[nodiscard]] Model model();
  /// Returns the client as a function that asks only as `beside` allows, for checks beside agents
  /// of the same server. The client must outlive it.
  [[nodiscard]] Model model_beside();

  /// Returns the kind of server: asked once, for at most 2 s, then remembered.
  [[nodiscard]] ServerKind server(const std::stop_token& stop = {});

  /// Returns the request in a form that does not make an agent of the same server read its prompt
  /// again. On llama.cpp the form names another slot. The request stays unchanged where prompts do
  /// not displace each other: on vLLM, and for a service on the internet. Failure with reason
  /// `not_asked`: there is no such form, or not now. The message has the cause.
  [[nodiscard]] Result<ChatRequest, Failure> beside(ChatRequest request,
                                                    const std::stop_token& stop = {});

 private:
  struct State;
  explicit ModelClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
