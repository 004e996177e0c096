/// \file
/// Calls that the monitor kept from running. Their reports have the monitor's own words.
#pragma once

#include "facts/agent_tools.h"
#include "watchdog/history.h"

namespace watchdog {

/// After a cancel the monitor denies each call, in the same words. Such calls do not make a loop.
[[nodiscard]] inline bool is_denied(const History& history, const Report& of) {
  return history.notes->cancel && is_failure(of.kind) &&
         (of.event_id.starts_with(denied_call) || of.content.starts_with(denied_call));
}

/// A call that a rule of the monitor's owner refused, see recovery. It is neither a step of a loop
/// nor progress. A person's denial has no such id, and counts: the agent asked for it.
[[nodiscard]] inline bool is_refused(const Event& event) {
  return event.origin == ReportOrigin::monitor && is_failure(event.report.kind) &&
         event.report.event_id.starts_with(denied_call);
}

}  // namespace watchdog
