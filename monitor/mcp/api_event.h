/// \file
/// Events as the HTTP API shows them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "watchdog/report.h"

namespace watchdog::monitor {

/// Returns an event of the API, as far as waits and timelines ask about it; of kinds that only a
/// monitor writes no more than that.
[[nodiscard]] Event api_event(const nlohmann::json& object);

}  // namespace watchdog::monitor
