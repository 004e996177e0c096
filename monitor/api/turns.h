/// \file
/// Turns of all sessions: which are open, and how one is stopped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/message.h"
#include "core/backend.h"

namespace watchdog::monitor {

[[nodiscard]] Response turns_response(const std::vector<ActiveTurn>& turns, Instant now);

/// The session of an open turn. Errors: `not_found`, `conflict` (two sessions have a turn of this
/// id).
[[nodiscard]] Result<std::string> session_of_turn(Backend& backend, std::string_view turn);

/// Returns the reports that stop a turn, or one of its calls; nothing if that was requested
/// already. `unserved`: no process can do it, so the turn is over, with all that it began. Errors:
/// `not_found` (no such turn, or call, is open).
[[nodiscard]] Result<std::vector<Report>> reports_to_abort(const Case& judged,
                                                           const Directive& directive,
                                                           const CancelRequest& asked,
                                                           bool unserved);

}  // namespace watchdog::monitor
