/// \file
/// Bounds of JSON from outside, so that few bytes cannot take much memory.
#pragma once

#include <cstddef>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog {

/// Values of one text: each takes up to 160 bytes. An event of the largest size has fewer.
inline constexpr std::size_t json_values_max = 600'000;
/// Events of one request body: each takes about half a kilobyte besides its texts.
inline constexpr std::size_t reports_at_once_max = 100'000;

/// Checks that a text can be parsed in bounded memory. Errors: `malformed`: it is not JSON, or
/// nested too deeply; `exhausted`: it has more than `json_values_max` values. Pure.
[[nodiscard]] Result<void> check_json(std::string_view text);

}  // namespace watchdog
