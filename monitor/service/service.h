/// \file
/// Sends a service's messages to systemd (sd_notify(3)): a datagram to the socket that it names. A
/// few lines, so systemd's library is not needed.
#pragma once

#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// `READY=1`, `STOPPING=1`, `WATCHDOG=1`. No effect without a listener. Thread-safe.
void notify_service_manager(std::string_view state) noexcept;

/// Returns the longest time between two `WATCHDOG=1` of this process; nothing: not requested.
[[nodiscard]] std::optional<Millis> service_watchdog();

}  // namespace watchdog::monitor
