/// \file
/// When a wait ends, in sentences for people. The sentence has the moment; its reader adds how long
/// that is from now.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog {

/// `2026-11-23 21:00 UTC`, rounded up to the minute: a limit is not over before.
[[nodiscard]] std::string minute_of(WallTime time);
/// `45 s`, `14 min`, `2 h 14 min`, `3 d 4 h`, rounded up.
[[nodiscard]] std::string left_in_words(Millis left);

/// Returns a text that says "until", followed by a minute_of(), with the time that is left from
/// `now`: `until 2026-11-23 21:00 UTC (in 2 h 14 min)`, in whole minutes. `moment` writes the
/// minute, for example in the reader's time zone. A text with another moment, or with one that has
/// passed, stays.
[[nodiscard]] std::string with_time_left(
    std::string_view text, WallTime now,
    const std::function<std::string(WallTime)>& moment = minute_of);

}  // namespace watchdog
