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

/// Which program answers. `unknown`: nothing but the API is relied on.
enum class ServerKind : std::uint8_t { unknown, llama_cpp, ollama, vllm };

template <>
struct Names<ServerKind> {
  static constexpr std::string_view all[] = {"unknown", "llama_cpp", "ollama", "vllm"};
};

/// Thread-safe: each call that is under way has a connection of its own.
class ModelClient {
 public:
  struct Options {
    /// `http[s]://HOST[:PORT][/v1]`, as `OPENAI_BASE_URL` has it: with or without `/v1`. Has to be
    /// given.
    std::string base_url{};
    std::string api_key{};            ///< Sent as a bearer token, never logged; empty: none.
    std::string model = "default";    ///< For requests that name none.
    bool stream = true;               ///< False: no word before the whole answer is there.
    std::filesystem::path ca_file{};  ///< More certificates to trust (PEM); empty: the system's.
    /// An answer above this is a failure (`malformed_answer`), and so is one of more values than
    /// such an answer needs. Bounds memory: an answer that is not streamed takes up to about six
    /// times as much, and 32 MiB, while it is read.
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

  /// Without a deadline. Closes the connection when `stop` is asked for.
  [[nodiscard]] Result<ChatAnswer, Failure> chat(const ChatRequest& request,
                                                 const ChatSink& sink = {},
                                                 const std::stop_token& stop = {});
  /// The client as a function; it must outlive it.
  [[nodiscard]] Model model();
  /// The client as a function that asks only as `beside` allows; for checks beside agents of the
  /// same server. It must outlive it.
  [[nodiscard]] Model model_beside();

  /// Which server it is: asked once, in a bounded time (2 s), then remembered.
  [[nodiscard]] ServerKind server(const std::stop_token& stop = {});

  /// The request as it may be asked beside an agent of the same server without making that agent
  /// read its prompt again: on another slot, or as it is where prompts do not displace each other
  /// (vLLM, a service on the internet). Failure with reason `not_asked`: there is no such way, or
  /// not now; the message says why.
  [[nodiscard]] Result<ChatRequest, Failure> beside(ChatRequest request,
                                                    const std::stop_token& stop = {});

 private:
  struct State;
  explicit ModelClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
