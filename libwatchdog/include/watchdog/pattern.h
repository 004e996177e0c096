/// \file
/// The names of the causes of a judgement: findings F1 … F7 and kinds of repetition R1 … R11.
#pragma once

#include <cstdint>

#include "watchdog/names.h"

namespace watchdog {

/// The cause of a judgement. `none`: nothing was wrong.
enum class Pattern : std::uint8_t {
  none,
  no_state_change,       ///< iterations without a state change
  repetition,            ///< repetition; always shown by its kind, R1 … R11
  below_pace,            ///< below its own pace
  silence,               ///< heartbeats stopped
  server_status,         ///< the state of the model server
  model_check,           ///< a model's answer about the session
  declared_wait,         ///< a declared wait
  same_call,             ///< the same call with the same result, round after round
  same_failing_call,     ///< the same call failing, round after round
  cycle_of_calls,        ///< a cycle of 2 … 8 rounds
  repeated_calls,        ///< repetition and near-repetition within the latest rounds
  same_error,            ///< one tool with changing arguments, always the same error
  invalid_calls,         ///< unknown tools, or arguments that do not parse
  same_message,          ///< the same message with nothing between
  messages_only,         ///< messages with nothing between
  repeated_text,         ///< a text that repeats itself
  recurring_states,      ///< states that come back, in a cycle of 1 … 4
  repeated_compactions,  ///< context compactions with nothing between
  nothing_new,           ///< rounds that bring nothing new

  // The codes by which schemas and older programs name them.
  F1 = no_state_change,
  F2 = repetition,
  F3 = below_pace,
  F4 = silence,
  F5 = server_status,
  F6 = model_check,
  F7 = declared_wait,
  R1 = same_call,
  R2 = same_failing_call,
  R3 = cycle_of_calls,
  R4 = repeated_calls,
  R5 = same_error,
  R6 = invalid_calls,
  R7 = same_message,
  R7b = messages_only,
  R8 = repeated_text,
  R9 = recurring_states,
  R10 = repeated_compactions,
  R11 = nothing_new,
};

template <>
struct Names<Pattern> {
  static constexpr std::string_view all[] = {"none", "F1",  "F2", "F3", "F4",  "F5", "F6",
                                             "F7",   "R1",  "R2", "R3", "R4",  "R5", "R6",
                                             "R7",   "R7b", "R8", "R9", "R10", "R11"};
};

inline constexpr std::size_t pattern_count = std::size(Names<Pattern>::all);

[[nodiscard]] constexpr bool is_repetition(Pattern pattern) noexcept {
  return pattern >= Pattern::same_call;
}

}  // namespace watchdog
