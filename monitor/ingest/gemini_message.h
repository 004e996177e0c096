/// \file
/// Members of Gemini CLI's messages, for its transcripts and its recordings.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {

/// True if the call has an outcome.
[[nodiscard]] inline bool is_gemini_call_over(const nlohmann::json& call) {
  const auto status = text_in(call, "status");
  return status == "success" || status == "error" || status == "cancelled";
}

/// The text of a call that is over: for the model, or else for a person.
[[nodiscard]] inline std::string gemini_result(const nlohmann::json& call) {
  const auto& results = member(call, "result");
  const auto& first = results.is_array() && !results.empty() ? results.front() : results;
  const auto& response = member(member(first, "functionResponse"), "response");
  const bool succeeded = text_in(call, "status") == "success";
  auto text = content_text(member(response, succeeded ? "output" : "error"));
  if (text.empty()) text = content_text(response);
  return text.empty() ? content_text(member(call, "resultDisplay")) : text;
}

/// The tokens of a message: the total, or else those of prompt and answer.
[[nodiscard]] inline std::int64_t gemini_tokens(const nlohmann::json& message) {
  const auto& tokens = member(message, "tokens");
  const auto all = tokens_in(tokens, "total");
  return all > 0 ? all : tokens_in(tokens, "input") + tokens_in(tokens, "output");
}

/// True for a message that says that a person stopped the turn.
[[nodiscard]] inline bool is_gemini_interruption(const std::string& type, const std::string& text) {
  return (type == "info" || type == "warning") && text.starts_with("Request cancelled");
}

}  // namespace watchdog::monitor
