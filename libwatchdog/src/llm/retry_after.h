/// \file
/// How much patience an HTTP answer asks for.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog {

/// `Sun, 06 Nov 1994 08:49:37 GMT`; nothing: it is no such date.
[[nodiscard]] std::optional<WallTime> http_date_from(std::string_view text);

/// From `retry-after-ms` and `retry-after` (seconds or a date, which counts from the server's own
/// `date` where it tells it); nothing: not asked for.
[[nodiscard]] std::optional<Millis> retry_after(
    const std::function<std::string_view(std::string_view)>& header, WallTime now);

}  // namespace watchdog
