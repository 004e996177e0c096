/// \file
/// What a request to a model's server asks, whichever of the usual APIs it is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/model.h"

namespace watchdog {

/// What a tool answered. A plain value.
struct ToolAnswer {
  std::string call_id;  ///< Empty: the API has none.
  std::string name;     ///< Likewise.
  std::string content;
  bool is_error = false;
};

/// A message of a conversation, told apart from others by its digest: what clients change of old
/// messages without meaning anything (marks for caches, how text is wrapped) is no part of it.
struct MessageMark {
  enum class Who : std::uint8_t { system, agent, tool, other };
  Who who = Who::other;
  std::uint64_t digest = 0;
};

/// By what a client itself names its conversation in a request; empty where it does not.
struct ConversationNames {
  std::string cache_key;          ///< OpenAI: `prompt_cache_key`.
  std::string session;            ///< `metadata.session_id`, or Anthropic's `metadata.user_id`.
  std::string conversation;       ///< Responses: `conversation`.
  std::string previous_response;  ///< Responses: `previous_response_id`.
  std::string user;               ///< OpenAI: `user`.
};

/// A message that the agent has not answered yet. A plain value.
struct NewMessage {
  std::string text;  ///< Its first MiB; empty for system prompts.
  std::vector<ToolAnswer> results;
};

/// A request for an answer, reduced to what tells conversations apart and what is new in them. A
/// plain value.
struct ModelRequest {
  std::string model;
  bool stream = false;
  bool readable = false;      ///< False: only that it is a request for an answer is known.
  std::uint64_t setup = 0;    ///< Of the names of its tools; without tools, of the system prompt.
  std::uint64_t opening = 0;  ///< Of the system prompt and the first message of the user, without
                              ///< numbers: they hold dates.
  std::vector<MessageMark> messages;
  std::size_t newest = 0;  ///< Where the messages begin that are not answered yet.
  /// From there on, with at most 1,000 results.
  std::vector<NewMessage> unanswered;
  std::vector<ToolRequest> calls;  ///< Asked for in the agent's words right before.
  ConversationNames names;
};

/// Nothing: it asks for no answer (a list of models, embeddings, …). Bounded and tolerant: what is
/// not understood is passed over. `target` may have a query. Linear in the body. Thread-safe.
[[nodiscard]] std::optional<ModelRequest> model_request_from(std::string_view method,
                                                             std::string_view target,
                                                             std::string_view body);

}  // namespace watchdog
