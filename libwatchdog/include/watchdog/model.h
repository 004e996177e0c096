/// \file
/// Requests to a model, their progress, and the answer.
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

/// A tool call that the model requests. `arguments` is its text, normally JSON.
struct ToolRequest {
  std::string id{};
  std::string name{};
  std::string arguments{};
};

/// One message of a conversation. A plain value.
struct ChatMessage {
  std::string role{};  ///< system, user, assistant, tool
  std::string content{};
  std::vector<ToolRequest> tool_calls{};  ///< Of the assistant.
  std::string tool_call_id{};             ///< Of a tool's answer.
};

/// A request. A plain value.
struct ChatRequest {
  std::string model{};  ///< Empty: the client's own.
  std::vector<ChatMessage> messages{};
  std::string tools{};  ///< A JSON array of tool definitions in the API's form; empty: none.
  std::optional<int> output_tokens_max{};
  std::optional<double> temperature{};
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
  std::string token{};
  double probability = 0;
};

/// A model's answer. A plain value.
struct ChatAnswer {
  std::string text{};
  std::string reasoning{};  ///< Reasoning, if the server separates it.
  std::vector<ToolRequest> tool_calls{};
  std::string finish_reason{};  ///< stop, length, tool_calls, …
  std::string model{};
  std::int64_t prompt_tokens = 0;  ///< 0: not reported.
  std::int64_t output_tokens = 0;
  std::vector<TokenProbability> tokens{};  ///< Of `text`, if requested and reported.
};

/// Waits for the answer without a time limit. Fails only by an explicit error, or with reason
/// `cancelled` when `stop` is requested. Thread-safe unless its maker says otherwise.
using Model = std::function<Result<ChatAnswer, Failure>(
    const ChatRequest& request, const ChatSink& sink, const std::stop_token& stop)>;

}  // namespace watchdog
