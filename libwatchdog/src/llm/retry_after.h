/// \file
/// Reads how long an HTTP response asks the client to wait.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog {

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`; nothing for other texts.
[[nodiscard]] std::optional<WallTime> http_date_from(std::string_view text);

/// Returns the pause from `retry-after-ms` or `retry-after` (seconds, or a date relative to the
/// server's own `date` if it is sent); nothing without one.
[[nodiscard]] std::optional<Millis> retry_after(
    const std::function<std::string_view(std::string_view)>& header, WallTime now);

}  // namespace watchdog
