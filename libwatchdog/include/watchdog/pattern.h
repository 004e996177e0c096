/// \file
/// The names of what a judgement goes by: findings F1 … F7 and kinds of repetition R1 … R11.
#pragma once

#include <cstdint>

#include "watchdog/names.h"

namespace watchdog {

/// What decided a judgement. `none`: nothing was wrong.
enum class Pattern : std::uint8_t {
  none,
  F1,   ///< the loop goes round without a state change
  F2,   ///< repetition; always told by its kind, R1 … R11
  F3,   ///< below its own pace
  F4,   ///< heartbeats stopped
  F5,   ///< evidence of the model's server
  F6,   ///< an opinion
  F7,   ///< a declared wait
  R1,   ///< the same call with the same result, round after round
  R2,   ///< the same call failing, round after round
  R3,   ///< a cycle of 2 … 8 rounds
  R4,   ///< repetition and near-repetition within the latest rounds
  R5,   ///< one tool with changing arguments, always the same error
  R6,   ///< unknown tools, or arguments that do not parse
  R7,   ///< the same message with nothing between
  R7b,  ///< messages with nothing between
  R8,   ///< a text that repeats itself
  R9,   ///< states that come back, in a cycle of 1 … 4
  R10,  ///< context compactions with nothing between
  R11   ///< rounds that bring nothing new
};

template <>
struct Names<Pattern> {
  static constexpr std::string_view all[] = {"none", "F1",  "F2", "F3", "F4",  "F5", "F6",
                                             "F7",   "R1",  "R2", "R3", "R4",  "R5", "R6",
                                             "R7",   "R7b", "R8", "R9", "R10", "R11"};
};

inline constexpr std::size_t pattern_count = std::size(Names<Pattern>::all);

[[nodiscard]] constexpr bool is_repetition(Pattern pattern) noexcept {
  return pattern >= Pattern::R1;
}

}  // namespace watchdog
