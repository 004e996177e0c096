/// \file
/// What a turn leaves open: items of a plan, an announced act, an answer that was cut. A notice for
/// people. No health, attention or alert follows from it.
#pragma once

#include <string>

#include "watchdog/history.h"

namespace watchdog {

/// Folds in a report. A person's input begins a new turn, with nothing open.
void fold_loose_ends(History& history, const Event& event);

/// Returns a sentence about the loose ends of an idle session's turn. Empty: none is known, or the
/// session is not idle. Also empty if a person interrupted the turn, if it failed, or if something
/// goes on without the model. Pure.
[[nodiscard]] std::string unfinished_note(const History& history);

}  // namespace watchdog
