/// \file
/// Asks a model: the request, the answer, why it failed, and a client of OpenAI-compatible servers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A plain value.
struct Failure {
  std::string
      reason{};  ///< The class: one of reasons.h. A run that this failure ends has this reason.
  std::string message{};                ///< For a person; names the server, the status, the limit.
  bool recoverable = false;             ///< The same request may succeed later.
  int status = 0;                       ///< Of an HTTP answer; 0: there was none.
  std::optional<Millis> retry_after{};  ///< The pause that the server asked for.
};

/// A tool call that the model requests. `arguments` is its text, normally JSON.
struct ToolRequest {
  std::string id{};         ///< The provider's id.
  std::string name{};       ///< The tool.
  std::string arguments{};  ///< A JSON object as text.
};

/// One message of a conversation. A plain value.
struct ChatMessage {
  std::string role{};                     ///< system, user, assistant, tool
  std::string content{};                  ///< The text.
  std::vector<ToolRequest> tool_calls{};  ///< Of the assistant.
  std::string tool_call_id{};             ///< Of a tool's answer.
};

/// A request. A plain value.
struct ChatRequest {
  std::string model{};                  ///< Empty: the client's own.
  std::vector<ChatMessage> messages{};  ///< The conversation, oldest first.
  std::string tools{};  ///< A JSON array of tool definitions in the API's form; empty: none.
  std::optional<int> output_tokens_max{};  ///< Empty: the server's own limit.
  std::optional<double> temperature{};     ///< Empty: the server's own.
  /// JSON schema of the answer, if the server can enforce it.
  std::string schema{};
  bool thinking = true;  ///< False: without reasoning, if the server can switch it off.
  /// Request the probabilities of the answer's tokens, if the server has them.
  bool probabilities = false;
  std::optional<int> slot{};  ///< llama.cpp: the slot to use. Other servers ignore it.
  /// Seed of the sampling. `ModelClient::beside` chooses it to recognise its own slots.
  std::optional<std::int64_t> seed{};
  /// Bounds this answer further than the client's own `answer_bytes_max`.
  std::optional<std::size_t> answer_bytes_max{};
};

/// The progress of a request so far. Its values only rise. A plain value.
struct ChatProgress {
  std::int64_t prompt_tokens = 0;  ///< Of the prompt, and
  std::int64_t prompt_read = 0;    ///< how many of them were read; 0: not reported.
  std::int64_t pieces = 0;         ///< Of the answer: about one for each token.
  std::int64_t bytes = 0;          ///< Of the answer: text, reasoning and arguments.
};

/// Receives the newest piece. `text` is part of the answer's text or reasoning, may be empty, and
/// is valid during the call. Called on the thread of the request.
using ChatSink = std::function<void(const ChatProgress& progress, std::string_view text)>;

/// A token of the answer and how probable it was, 0 … 1.
struct TokenProbability {
  std::string token{};     ///< The token's text.
  double probability = 0;  ///< 0 … 1.
};

/// A model's answer. A plain value.
struct ChatAnswer {
  std::string text{};                      ///< The text of the answer.
  std::string reasoning{};                 ///< Reasoning, if the server separates it.
  std::vector<ToolRequest> tool_calls{};   ///< The calls that the model requests.
  std::string finish_reason{};             ///< stop, length, tool_calls, …
  std::string model{};                     ///< The model's name as the server reports it.
  std::int64_t prompt_tokens = 0;          ///< 0: not reported.
  std::int64_t output_tokens = 0;          ///< Tokens of the answer; empty: not reported.
  std::vector<TokenProbability> tokens{};  ///< Of `text`, if requested and reported.
};

/// Waits for the answer without a time limit. Fails only by an explicit error, or with reason
/// `cancelled` when `stop` is requested. Thread-safe unless its maker says otherwise.
using Model = std::function<Result<ChatAnswer, Failure>(
    const ChatRequest& request, const ChatSink& sink, const std::stop_token& stop)>;

/// The program of the server. `unknown`: only the API is relied on.
enum class ServerKind : std::uint8_t { unknown, llama_cpp, ollama, vllm };

template <>
struct Names<ServerKind> {
  static constexpr std::string_view all[] = {"unknown", "llama_cpp", "ollama", "vllm"};
};

/// Thread-safe: each running call has its own connection.
class ModelClient {
 public:
  /// The server and how to reach it. A plain value.
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
    std::size_t idle_connections_max = 4;  ///< Connections that stay open for the next request.
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
