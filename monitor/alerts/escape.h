/// \file
/// Makes a text harmless for the program that shows it.
#pragma once

#include <string>
#include <string_view>

#include "config/channel_kind.h"

namespace watchdog::monitor {

/// Returns the text as the receiver must get it, in at most `bytes_max` bytes; what does not fit is
/// replaced by `…`. Never ends within a character or an escape. Thread-safe.
[[nodiscard]] std::string escaped(std::string_view text, Escapes escapes, std::size_t bytes_max);

}  // namespace watchdog::monitor
