/// \file
/// Whether a model's answer ended before its usual end.
#pragma once

#include <string_view>

namespace watchdog {

/// Returns the word of early_ends for a server's reason for the end of an answer; empty: it is the
/// usual end, or it is not known. `has_calls`: the answer has calls of tools.
[[nodiscard]] std::string_view early_end(std::string_view finish_reason, bool has_calls) noexcept;

}  // namespace watchdog
