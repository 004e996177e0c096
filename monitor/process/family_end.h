/// \file
/// Ends a process and all that it started.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>

#include "facts/process.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Says why a process must not be ended; empty: it may.
using WhyNotEnd = std::function<std::string(const ProcessSample&)>;

/// Ends this process and its descendants: SIGTERM, and SIGKILL to those that still run after
/// `grace`, or after a stop. Returns how many were ended; 0: they have left by themselves. Before
/// each signal `why_not` is asked about all of them; this program and login shells are never ended.
/// Errors: `conflict`: one of them must not be ended, so no further signal is sent; `exhausted`:
/// some could not be ended. Waits. Thread-safe.
[[nodiscard]] Result<std::size_t> end_family(const ProcessSample& first, Millis grace,
                                             const WhyNotEnd& why_not, const std::stop_token& stop);

}  // namespace watchdog::monitor
