/// \file
/// Asking a model: what is sent, what comes while it works, and what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/failure.h"
#include "watchdog/result.h"

namespace watchdog {

/// A tool that the model wants to be called. `arguments` is what it wrote: JSON, if it kept to it.
struct ToolRequest {
  std::string id;
  std::string name;
  std::string arguments;
};

/// One message of a conversation. A plain value.
struct ChatMessage {
  std::string role;  ///< system, user, assistant, tool
  std::string content{};
  std::vector<ToolRequest> tool_calls{};  ///< Of the assistant.
  std::string tool_call_id{};             ///< Of a tool's answer.
};

/// What is asked. A plain value.
struct ChatRequest {
  std::string model{};  ///< Empty: the client's own.
  std::vector<ChatMessage> messages;
  std::string tools{};  ///< A JSON array of tool definitions as the API has them; empty: none.
  std::optional<int> output_tokens_max{};
  std::optional<double> temperature{};
  /// JSON schema that the answer has to follow, where the server can hold the model to it.
  std::string schema{};
  bool thinking = true;  ///< False: without reasoning first, where the server can switch it off.
  /// Ask for the probabilities of the answer's tokens, where the server gives them.
  bool probabilities = false;
  std::optional<int> slot{};  ///< llama.cpp: which of the server's slots. Others ignore it.
  /// What the sampling's randomness begins with. `ModelClient::beside` chooses it where it tells
  /// the server's slots apart.
  std::optional<std::int64_t> seed{};
  /// Bounds this answer further than the client's own `answer_bytes_max`.
  std::optional<std::size_t> answer_bytes_max{};
};

/// What has come so far. Rises only. A plain value.
struct ChatProgress {
  std::int64_t prompt_tokens = 0;  ///< Of the prompt, and
  std::int64_t prompt_read = 0;    ///< how many of them were read; 0: the server does not tell.
  std::int64_t pieces = 0;         ///< Of the answer: about one a token.
  std::int64_t bytes = 0;          ///< Of the answer: text, reasoning and arguments.
};

/// Something came: `text` is the newest piece of the answer's text or reasoning, may be empty and
/// is valid during the call. Called on the thread that asks.
using ChatSink = std::function<void(const ChatProgress& progress, std::string_view text)>;

/// A token of the answer and how probable it was, 0 … 1.
struct TokenProbability {
  std::string token;
  double probability = 0;
};

/// What the model answered. A plain value.
struct ChatAnswer {
  std::string text;
  std::string reasoning;  ///< What it thought aloud, where the server tells it apart.
  std::vector<ToolRequest> tool_calls;
  std::string finish_reason;  ///< stop, length, tool_calls, …
  std::string model;
  std::int64_t prompt_tokens = 0;  ///< 0: not told.
  std::int64_t output_tokens = 0;
  std::vector<TokenProbability> tokens;  ///< Of `text`, where asked for and told.
};

/// Waits for the answer as long as it takes. Fails by an explicit error only, or with reason
/// `cancelled_by_user` when `stop` is asked for. Thread-safe unless its maker says otherwise.
using Model = std::function<Result<ChatAnswer, Failure>(
    const ChatRequest& request, const ChatSink& sink, const std::stop_token& stop)>;

}  // namespace watchdog
