/// \file
/// The details of a session when it got into trouble, for people who look into it later.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facts/process.h"
#include "watchdog/health.h"
#include "watchdog/time.h"

namespace watchdog {

inline constexpr std::size_t situation_bytes_max = 8'192;
/// Number of the session's newest events in it.
inline constexpr int situation_events = 20;

/// Facts beside the history. A plain value.
struct SituationContext {
  std::vector<Seq> events;  ///< The session's newest, oldest first; at most `situation_events`.
  std::optional<ProcessTree> process;  ///< Its process, if that could be looked at.
};

/// Returns a JSON object of at most `situation_bytes_max`: longer names are cut, and then lists.
/// REQUIRES: `now` not before the newest event.
[[nodiscard]] std::string situation_of(const Case& judged, Instant now,
                                       const SituationContext& around = {});

}  // namespace watchdog
