/// \file
/// Members of opencode's messages and their parts, for its transcripts and its recordings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {

/// True if the state of a call has an outcome.
[[nodiscard]] inline bool is_opencode_call_over(const nlohmann::json& state) {
  const auto status = text_in(state, "status");
  return status == "completed" || status == "error";
}

/// True for a call that failed, and for a command with a code above 0.
[[nodiscard]] inline bool is_opencode_failure(const nlohmann::json& state) {
  return text_in(state, "status") == "error" || number_in(member(state, "metadata"), "exit") > 0;
}

/// The text of a call that is over.
[[nodiscard]] inline std::string opencode_result(const nlohmann::json& state) {
  return content_text(member(state, text_in(state, "status") == "error" ? "error" : "output"));
}

/// Tokens of a message or a step without those of a cache.
[[nodiscard]] inline std::int64_t opencode_tokens(const nlohmann::json& message) {
  const auto& tokens = member(message, "tokens");
  return tokens_in(tokens, "input") + tokens_in(tokens, "output") + tokens_in(tokens, "reasoning");
}

/// The cost of a message or a step in US dollars.
[[nodiscard]] inline double opencode_cost(const nlohmann::json& message) {
  const auto& cost = member(message, "cost");
  return cost.is_number() && cost.get<double>() > 0 ? std::min(cost.get<double>(), 1e9) : 0;
}

/// True if a person wrote the text of this part.
[[nodiscard]] inline bool is_opencode_prompt(const nlohmann::json& part) {
  return text_in(part, "type") == "text" && !flag_in(part, "synthetic") &&
         !flag_in(part, "ignored");
}

/// True if an answer with this `finish` is the last one of its turn.
[[nodiscard]] inline bool ends_opencode_turn(const std::string& finish) {
  return !finish.empty() && finish != "tool-calls" && finish != "unknown";
}

}  // namespace watchdog::monitor
