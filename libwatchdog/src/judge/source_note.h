/// \file
/// By which ways a session is heard, and what each tells.
#pragma once

#include "watchdog/history.h"

namespace watchdog {

/// Notes by which way the event came, and what it tells.
void note_source(History& history, const Event& event);
/// Returns when the newest report about the session was made. An absence of the monitor, and what
/// it notes by itself, is none.
[[nodiscard]] WallTime newest_report(const History& history);
/// Returns true if a line of a transcript is older than the newest report of a hook. Hooks report
/// at once, while a transcript is read a moment later: its calls may belong to a turn that is over.
[[nodiscard]] bool is_older_than_hooks(const History& history, const Event& event);

}  // namespace watchdog
