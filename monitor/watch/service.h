/// \file
/// What systemd wants to hear of a service (sd_notify(3)): a datagram to the socket that it names.
/// Ours to write in a few lines, so that no library of systemd's is needed.
#pragma once

#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// `READY=1`, `STOPPING=1`, `WATCHDOG=1`. Nothing happens where nobody listens. Thread-safe.
void tell_service_manager(std::string_view state) noexcept;

/// How often it must hear `WATCHDOG=1` of this process at the latest; nothing: it does not ask.
[[nodiscard]] std::optional<Millis> service_watchdog();

}  // namespace watchdog::monitor
