/// \file
/// Ends a process and all that it started.
#pragma once

#include <cstddef>
#include <stop_token>

#include "facts/process.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Ends this process and its descendants: SIGTERM, and SIGKILL to those that still run after
/// `grace`, or after a stop. Returns how many were ended; 0: they have left by themselves. Errors:
/// `conflict`, with nothing ended: this program, or the shell of a person who is logged in, is one
/// of them; `exhausted`: some could not be ended. Waits. Thread-safe.
[[nodiscard]] Result<std::size_t> end_family(const ProcessSample& first, Millis grace,
                                             const std::stop_token& stop);

}  // namespace watchdog::monitor
