/// \file
/// Reads times as other programs write them.
#pragma once

#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// Reads `2026-11-22T10:34:12.204Z`. A space may be in the place of `T`. The fraction and the zone
/// (`Z`, `+02:00`, `+0200`) may be absent; without a zone it is UTC. Returns nothing for any
/// other text. Pure.
[[nodiscard]] std::optional<WallTime> time_in_text(std::string_view text);

}  // namespace watchdog::monitor
