/// \file
/// Makes agents' texts fit to be shown in one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog {

/// Returns the text in one line without control characters, cut at `bytes_max`.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t bytes_max);

}  // namespace watchdog
