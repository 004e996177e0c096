/// \file
/// The question in the middle of everything: given what a session said, how is it?
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "watchdog/history.h"
#include "watchdog/names.h"
#include "watchdog/pattern.h"
#include "watchdog/policy.h"
#include "watchdog/time.h"

namespace watchdog {

/// What is concluded about a running session. Never ends it.
enum class HealthKind : std::uint8_t {
  unknown,      ///< created, has said nothing
  starting,     ///< alive, no state change yet
  progressing,  ///< got somewhere
  slow,         ///< alive, below its own pace, no sign of being stuck
  suspect,      ///< may be stuck; not confirmed
  stuck,        ///< alive, and gets nowhere
  looping,      ///< repeats itself
  blocked,      ///< waits on purpose
  silent,       ///< its heartbeats stopped
  dead          ///< silent, and its process is gone
};

template <>
struct Names<HealthKind> {
  static constexpr std::string_view all[] = {"unknown", "starting", "progressing", "slow",
                                             "suspect", "stuck",    "looping",     "blocked",
                                             "silent",  "dead"};
};

/// How much the health of a session explains of why others wait for it: the greater the more, 0
/// nothing.
[[nodiscard]] constexpr int severity(HealthKind kind) noexcept {
  switch (kind) {
    case HealthKind::dead:
      return 6;
    case HealthKind::silent:
      return 5;
    case HealthKind::stuck:
      return 4;
    case HealthKind::looping:
      return 3;
    case HealthKind::blocked:
      return 2;
    case HealthKind::suspect:
      return 1;
    default:
      return 0;
  }
}

/// A judgement. A plain value.
struct Health {
  HealthKind kind = HealthKind::unknown;
  Pattern pattern = Pattern::none;
  /// Without a further event this answer holds for every instant before it.
  Instant valid_until = never;
  /// Events that prove it; 0 where there are fewer.
  std::array<Seq, 2> evidence{};

  /// Same conclusion for the same cause; when it expires does not matter.
  [[nodiscard]] bool same_as(const Health& other) const noexcept {
    return kind == other.kind && pattern == other.pattern;
  }
};

/// How the session is at `now`. Pure. REQUIRES: now >= history.tick, and the session has not ended.
[[nodiscard]] Health judge(const History& history, const Policy& policy, Instant now);

/// P-2 alone: at least `stuck_threshold` loop heartbeats, and no state change at or after the first
/// of the latest so many.
[[nodiscard]] bool base_rule(const History& history, const Policy& policy) noexcept;

/// How long nothing may be heard before it is silence: `silence_intervals`, and the longest gap
/// between its latest heartbeats rounded to whole intervals.
[[nodiscard]] Millis silence_bound(const History& history, const Policy& policy) noexcept;

/// When the session's silence becomes remarkable, whatever its heartbeats come from.
[[nodiscard]] Instant silence_begins(const History& history, const Policy& policy) noexcept;

/// True for what somebody should look into: it may be stuck, is, or is not heard of any more.
[[nodiscard]] constexpr bool is_trouble(HealthKind kind) noexcept {
  return severity(kind) > 0 && kind != HealthKind::blocked;
}

/// What the session does now by its pace: its bounds, since when, and when they are reached.
struct PaceNow {
  std::string_view activity;  ///< The tool or phase; valid while the history is.
  std::uint32_t kind = 0;     ///< The activity's, see Pace.
  PaceBounds bounds;
  Instant since{};
  Instant slow_at = never;
  Instant suspect_at = never;
};
[[nodiscard]] PaceNow pace_now(const History& history, const Policy& policy) noexcept;

/// Until when what is known of the model's server counts: where whoever relays the requests sends
/// heartbeats, `call_idle_max` after it was heard last, because it may be gone itself; else
/// `never`.
[[nodiscard]] Instant server_known_until(const History& history, const Policy& policy) noexcept;
/// What the model's server does, in a few words; empty where there is nothing to tell: `reads the
/// prompt: 41,216 of 61,440 tokens, about 2 min left`.
[[nodiscard]] std::string server_in_words(const ServerNote& note);
/// Likewise for a cell of a table: `reading 41,216 / 61,440, ~2 min`.
[[nodiscard]] std::string server_in_brief(const Evidence& evidence);

/// How many independent confirmations a suspicion has: repetition, models, the agent itself, its
/// model's server.
[[nodiscard]] int confirmations(const History& history, const Policy& policy);

/// The pattern's own kind of trouble: looping where it is a repetition, else stuck.
[[nodiscard]] HealthKind trouble_of(Pattern pattern) noexcept;

/// `alive` of the progress document: the last heartbeat is younger than two intervals. False before
/// the first heartbeat and after the end.
[[nodiscard]] bool is_alive(const History& history, const Policy& policy, Instant now) noexcept;

/// The judgement in a sentence for a person.
[[nodiscard]] std::string reason_of(const Health& health, const History& history,
                                    const Policy& policy);
/// What one piece of evidence shows; `at` counts within `health.evidence`.
[[nodiscard]] std::string evidence_note(const Health& health, std::size_t at);

/// Version of these rules; transitions carry it.
inline constexpr std::string_view detector_version = "5";

}  // namespace watchdog
