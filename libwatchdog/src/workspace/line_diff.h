/// \file
/// The change between two texts, for a person who is to confirm it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog {

/// A unified diff (POSIX diff -u) with three lines of context, at most `chars_max` characters; what
/// is left out is counted at its end. Empty if nothing changed. The fewest lines, where that can be
/// found in bounded time; else all between the first and the last that differ. Characters that a
/// terminal obeys, or that turn the direction of writing, are shown as signs of themselves.
/// REQUIRES: UTF-8.
[[nodiscard]] std::string unified_diff(std::string_view before, std::string_view after,
                                       std::string_view before_name, std::string_view after_name,
                                       std::size_t chars_max);

}  // namespace watchdog
