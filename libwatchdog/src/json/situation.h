/// \file
/// What was known of a session when it got into trouble: evidence for whoever looks into it later.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "watchdog/case.h"
#include "watchdog/time.h"

namespace watchdog {

inline constexpr std::size_t situation_bytes_max = 8'192;
/// How many of the session's newest events are named.
inline constexpr int situation_events = 20;

/// What a history does not tell. A plain value.
struct Surroundings {
  std::vector<Seq> events;  ///< The session's newest, oldest first; at most `situation_events`.
  std::optional<ProcessTree> process;  ///< Its process, if that could be looked at.
};

/// A JSON object of at most `situation_bytes_max`: where names are so long that it would be more,
/// they are cut, and then lists as well. REQUIRES: `now` not before the newest event.
[[nodiscard]] std::string situation_of(const Case& judged, Instant now,
                                       const Surroundings& around = {});

}  // namespace watchdog
