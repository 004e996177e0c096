/// \file
/// The thresholds by which a session is judged.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Thresholds of one session. A plain value. No field ends a session: they change a label, start a
/// check or send a notice.
struct Policy {
  /// How often a live agent says so. 100 ms … 1 h. Longer: `alive` and `silent` notice later.
  Millis heartbeat_interval{10'000};
  /// Loop heartbeats without a state change that make a session stuck. 2 … 10,000. Higher: loops
  /// that only spin are noticed later; lower: agents with long phases are called stuck wrongly.
  std::int64_t stuck_threshold = 5;
  /// Missed intervals before silence, on top of the longest gap seen lately. 1 … 1,000.
  std::int64_t silence_intervals = 3;
  /// How long an open tool call without progress excuses missing state changes. 1 s … 7 days.
  Millis call_idle_max{120'000};
  /// Whether a model may be asked about a suspicious session.
  bool concurrent_checks = true;

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// A change to a policy: only the fields that are set change. A plain value.
struct PolicyPatch {
  std::optional<Millis> heartbeat_interval;
  std::optional<std::int64_t> stuck_threshold;
  std::optional<std::int64_t> silence_intervals;
  std::optional<Millis> call_idle_max;
  std::optional<bool> concurrent_checks;

  friend bool operator==(const PolicyPatch&, const PolicyPatch&) = default;
};

/// The policy with the patch applied.
[[nodiscard]] Policy patched(Policy policy, const PolicyPatch& patch);

/// Errors: `invalid`, naming the field and its range.
[[nodiscard]] Result<void> check(const PolicyPatch& patch);

/// A digest of all thresholds: transitions carry it, so that a later reader knows what they were
/// judged by.
[[nodiscard]] std::uint64_t digest_of(const Policy& policy);

}  // namespace watchdog
