/// \file
/// Texts of other programs, cut to a number of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/figures.h"
#include "text/utf8.h"

namespace watchdog::monitor {

/// The first bytes of a text; no character is split. Pure.
[[nodiscard]] inline std::string first_bytes(std::string_view text, std::size_t bytes_max) {
  std::string first(text.substr(0, bytes_max));
  if (first.size() < text.size()) drop_half_character(first);
  return first;
}

/// `2 commands run: npm run dev, make watch`: at most three are named. Empty: there are none. Pure.
[[nodiscard]] inline std::string commands_that_run(std::span<const std::string> commands) {
  constexpr std::size_t named_max = 3;
  if (commands.empty()) return {};
  auto text = counted_as(static_cast<std::int64_t>(commands.size()), "command") +
              (commands.size() == 1 ? " runs" : " run");
  for (std::size_t at = 0; at < commands.size() && at < named_max; ++at)
    text += (at == 0 ? ": " : ", ") + commands[at];
  return text;
}

}  // namespace watchdog::monitor
