/// \file
/// How urgent sessions are, and how many there are of each state.
#pragma once

#include <string>

#include "core/backend.h"
#include "core/feed.h"
#include "judge/attention.h"

namespace watchdog::monitor {

/// How urgent the session is, as it is now.
[[nodiscard]] Result<Urgency> urgency_of(const Backend& backend, StoreReader& reader,
                                         const SessionRow& row, WallTime wall);

/// How many sessions there are of each state and attention, as a JSON object.
[[nodiscard]] Result<std::string> summary_of(Backend& backend, StoreReader& reader, WallTime wall);

/// Publishes the present rows of the sessions that changed, and the summary.
void publish_changed(Feed& feed, Backend& backend, StoreReader& reader);

}  // namespace watchdog::monitor
