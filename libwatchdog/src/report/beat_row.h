/// \file
/// Gathers heartbeats into a row without allocating: what `absorb` does to a row of one, for the
/// agent's own thread.
#pragma once

#include "watchdog/report.h"
#include "watchdog/tracker.h"

namespace watchdog {

/// The heartbeat as a row of one.
[[nodiscard]] Heartbeats row_of(const Heartbeat& beat, Instant at);
/// True if it may join the row.
[[nodiscard]] bool continues(const Heartbeats& row, const Heartbeat& beat) noexcept;
/// Equal to `absorb(row, row_of(beat, at))`. REQUIRES: continues(row, beat).
void extend(Heartbeats& row, const Heartbeat& beat, Instant at);

}  // namespace watchdog
