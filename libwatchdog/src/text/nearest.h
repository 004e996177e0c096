/// \file
/// Suggests a known word for an unknown one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"

namespace watchdog {

/// Returns the word with the fewest changed, missing, added or swapped letters; empty: none is
/// near. Thread-safe.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& words);

/// Returns `; did you mean status?`, or empty if no word is near.
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& words);

/// Returns `unknown health "stuk"; did you mean stuck? Use one of: unknown, starting, …`. `what` is
/// the noun, `words` are all allowed ones.
[[nodiscard]] std::string unknown_word(std::string_view what, std::string_view word,
                                       const std::vector<std::string>& words);

/// The names of an enum's enumerators, in their order.
template <class Enum>
[[nodiscard]] std::vector<std::string> all_names() {
  return {std::begin(Names<Enum>::all), std::end(Names<Enum>::all)};
}

}  // namespace watchdog
