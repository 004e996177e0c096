/// \file
/// Texts of other programs, cut to a number of bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/utf8.h"

namespace watchdog::monitor {

/// The first bytes of a text; no character is split. Pure.
[[nodiscard]] inline std::string first_bytes(std::string_view text, std::size_t bytes_max) {
  std::string first(text.substr(0, bytes_max));
  if (first.size() < text.size()) drop_half_character(first);
  return first;
}

}  // namespace watchdog::monitor
