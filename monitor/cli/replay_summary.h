/// \file
/// What `replay` says of a recorded session, as JSON and for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/health.h"

namespace watchdog::monitor {

/// Limits of other programs that a person wants to weigh.
struct ReplayLimits {
  int seconds = 0;  ///< 0: no such limit.
  int steps = 0;    ///< Likewise.
};

/// The place in a trace where something was first seen.
struct ReplayFinding {
  std::int64_t seq = 0;
  int call = 0;
  Pattern pattern = Pattern::none;
};

/// The effect that a limit would have had. A plain value.
struct ReplayLimitEffect {
  int call = 0;                    ///< The calls that had begun.
  std::optional<Millis> before{};  ///< The time from there to the end; nothing: it is not known.
};

/// One change of health. A plain value.
struct ReplayConclusion {
  std::int64_t seq = 0;
  int call = 0;
  std::optional<Millis> after{};  ///< Since the run began; nothing: it has no times.
  HealthKind health = HealthKind::unknown;
  Pattern pattern = Pattern::none;
  std::string reason{};
};

/// All that `replay` says of one session. A plain value.
struct ReplaySummary {
  std::string trace;
  std::string session;
  std::string format;
  int events = 0;
  int calls = 0;
  int steps = 0;
  std::string outcome;  ///< Empty: the trace has no end.
  HealthKind health = HealthKind::unknown;
  std::optional<ReplayFinding> suspect;
  std::optional<ReplayFinding> stuck;
  std::optional<std::int64_t> begins_ms;
  std::int64_t ends_ms = 0;
  std::vector<ReplayConclusion> conclusions;
  std::optional<ReplayLimitEffect> by_seconds;
  std::optional<ReplayLimitEffect> by_steps;
  std::int64_t unread = 0;  ///< Lines of the file that could not be read.
  bool is_partial = false;  ///< Something of the file was not read.
};

/// Returns one JSON object.
[[nodiscard]] std::string json_of(const ReplaySummary& summary, const ReplayLimits& limits);
/// Returns what a reader of the row must know, in brackets: it is partial, or shows no calls. May
/// be empty.
[[nodiscard]] std::string note_of(const ReplaySummary& summary);
/// Prints the conclusions in order, and what the limits would have cost.
void print_details(const ReplaySummary& summary, const ReplayLimits& limits);
/// Returns the cell of a table.
[[nodiscard]] std::string shown(const std::optional<ReplayFinding>& finding);

}  // namespace watchdog::monitor
