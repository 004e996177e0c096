#include "llm/early_end.h"

#include <algorithm>
#include <iterator>

#include "watchdog/report.h"

namespace watchdog {

std::string_view early_end(std::string_view finish_reason, bool has_calls) noexcept {
  // Of OpenAI, Ollama and llama.cpp; of Anthropic; of Gemini; of Anthropic again.
  constexpr std::string_view of_length[] = {"length", "max_tokens", "MAX_TOKENS",
                                            "model_context_window_exceeded"};
  constexpr std::string_view of_calls[] = {"tool_calls", "tool_use", "function_call"};
  const auto is_one_of = [&](const auto& words) {
    return std::ranges::find(words, finish_reason) != std::end(words);
  };
  if (has_calls) return {};
  if (is_one_of(of_length)) return early_ends::length;
  return is_one_of(of_calls) ? early_ends::calls : std::string_view();
}

}  // namespace watchdog
