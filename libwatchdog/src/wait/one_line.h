/// \file
/// What agents say, fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog {

/// In one line that steers no terminal, cut after so many bytes.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t bytes_max);

}  // namespace watchdog
