/// \file
/// Reports and histories as the store keeps them: fields without a column, and snapshots.
#pragma once

#include <string>
#include <string_view>

#include "watchdog/health.h"
#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog {

/// The fields of a report that have no column of their own, as a JSON object; empty if there are
/// none. `tick` is the event's: times of heartbeats are kept relative to it.
[[nodiscard]] std::string facts_of(const Report& report, Instant tick);
/// The reverse. REQUIRES: report.kind is set. Errors: `corrupt`.
[[nodiscard]] Result<void> read_facts(Report& report, std::string_view facts, Instant tick);

/// Version of the snapshot's shape. A snapshot of another version is not read; events are folded
/// instead.
inline constexpr int snapshot_format = 3;
/// Everything of a case but its session key.
[[nodiscard]] std::string snapshot_of(const Case& judged);
/// Errors: `corrupt`; then `judged` is unchanged.
[[nodiscard]] Result<void> read_snapshot(Case& judged, std::string_view text);

}  // namespace watchdog
