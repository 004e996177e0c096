/// \file
/// Reads a request to a model server in any of the usual APIs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/model_client.h"

namespace watchdog {

/// A tool's result. A plain value.
struct ToolAnswer {
  std::string call_id{};  ///< Empty: the API has no ids.
  std::string name{};     ///< Likewise.
  std::string content{};
  bool is_error = false;
};

/// A message of a conversation, identified by its digest. The digest leaves out changes without
/// meaning that clients make in old messages (cache marks, wrapping).
struct MessageMark {
  enum class Who : std::uint8_t { system, agent, tool, other };
  Who who = Who::other;
  std::uint64_t digest = 0;
};

/// The names that a client itself gives its conversation; empty without them.
struct ConversationNames {
  std::string cache_key{};          ///< OpenAI: `prompt_cache_key`.
  std::string session{};            ///< `metadata.session_id`, or Anthropic's `metadata.user_id`.
  std::string conversation{};       ///< Responses: `conversation`.
  std::string previous_response{};  ///< Responses: `previous_response_id`.
  std::string user{};               ///< OpenAI: `user`.
};

/// A message that the agent has not answered. A plain value.
struct NewMessage {
  std::string text{};  ///< Its first MiB; empty for system prompts.
  std::vector<ToolAnswer> results{};
};

/// A request for an answer, reduced to what identifies its conversation and what is new in it. A
/// plain value.
struct ModelRequest {
  std::string model{};
  bool stream = false;
  bool readable = false;      ///< False: its messages are not known.
  bool is_cut = false;        ///< Only its beginning was read.
  bool has_tools = false;     ///< It offers tools.
  bool is_helper = false;     ///< A known agent asks for a title, a summary and the like: its
                              ///< prompt says so. Nothing of it is the agent's own work.
  std::uint64_t setup = 0;    ///< Of the names of its tools; without tools, of the system prompt.
  std::uint64_t opening = 0;  ///< Of the system prompt and the first message of the user, without
                              ///< numbers: they hold dates.
  std::vector<MessageMark> messages{};
  std::size_t newest = 0;  ///< Index of the first message without an answer.
  /// The messages from there on, with at most 1,000 results.
  std::vector<NewMessage> unanswered{};
  std::vector<ToolRequest> calls{};  ///< The calls in the agent's words right before.
  ConversationNames names{};
};

/// Returns nothing for other requests (a list of models, embeddings, …). Bounded and tolerant:
/// unknown parts are skipped. `target` may have a query. Linear in the body. Thread-safe.
[[nodiscard]] std::optional<ModelRequest> model_request_from(std::string_view method,
                                                             std::string_view target,
                                                             std::string_view body);

/// The same of a body whose beginning only is known: its model, its names, and its opening if that
/// is in it (0: it is not). It is not `readable`: its newest messages are at its end.
[[nodiscard]] std::optional<ModelRequest> model_request_from_beginning(std::string_view method,
                                                                       std::string_view target,
                                                                       std::string_view beginning);

}  // namespace watchdog
