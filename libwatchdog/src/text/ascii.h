/// \file
/// Letters of protocols, whatever the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace watchdog {

/// With `A` to `Z` in lower case; other bytes stay as they are.
[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return result;
}

}  // namespace watchdog
