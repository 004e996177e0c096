/// \file
/// Which process a session has: what a reporter says of it, and what proves it.
#pragma once

#include "watchdog/history.h"

namespace watchdog {

/// Returns true if the monitor found out whose process it is. It looks up the sender's connection:
/// for each report of a hook or of a proxy, and for others that name their own process.
[[nodiscard]] bool is_proven(const ProcessFacts& process, ReportOrigin origin);
/// Returns the process that a start names; null: none. In a session of `run` the wrapper's process
/// is proven, so a reporter's word puts no other one into its place. Lives as long as the event.
[[nodiscard]] const ProcessFacts* process_started(const History& history, const Event& event);

}  // namespace watchdog
