/// \file
/// A session's state in one word, and whether a person should look. All displays use these
/// functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "watchdog/health.h"
#include "watchdog/result.h"

namespace watchdog {

/// The party that must act next, the most urgent first.
enum class Attention : std::uint8_t {
  needs_you,  ///< a person
  ready,      ///< a person, at any time: the turn is over
  watch,      ///< perhaps a person, later
  working,    ///< the agent
  resting     ///< nobody
};

template <>
struct Names<Attention> {
  static constexpr std::string_view all[] = {"needs_you", "ready", "watch", "working", "resting"};
};

/// The state of a session, the most severe first within its attention.
enum class SessionState : std::uint8_t {
  dead,
  stuck,
  looping,
  silent,
  failed,
  needs_input,  ///< waits for a person: approval, an answer, a login
  incomplete,
  your_turn,  ///< its turn is over, and nothing goes on
  suspect,
  waiting,  ///< for quota, the model's server, its children, the next try
  slow,
  unknown,
  starting,
  progressing,
  idle,
  cancelled,
  completed
};

template <>
struct Names<SessionState> {
  static constexpr std::string_view all[] = {
      "dead",       "stuck",       "looping", "silent",    "failed",   "needs_input",
      "incomplete", "your_turn",   "suspect", "waiting",   "slow",     "unknown",
      "starting",   "progressing", "idle",    "cancelled", "completed"};
};

/// State and attention. A plain value.
struct Standing {
  SessionState state = SessionState::unknown;
  Attention attention = Attention::working;

  friend bool operator==(const Standing&, const Standing&) = default;
};

/// The input of `standing_of`. A plain value.
struct StandingFacts {
  Lifecycle lifecycle = Lifecycle::running;
  HealthKind health = HealthKind::unknown;
  std::string_view waits_for{};  ///< While it waits: what for, see wait_reports.
  /// Nobody needs to act on its end, or on the end of its turn: it was acknowledged, is older than
  /// `end_fresh_for`, or something goes on after the turn.
  bool settled = false;
  bool quiet = false;  ///< Nothing shows that it works, see Pattern::quiet.
  bool known = false;  ///< A person acknowledged its trouble.
};

/// How long a failed end needs a person if nobody acknowledges it, and how long a finished turn is
/// ready for its person. Two minutes would be over when a person is back from lunch.
inline constexpr Millis end_fresh_for{86'400'000};

/// Returns true if only a person can end a wait of this name.
[[nodiscard]] bool is_for_person(std::string_view waits_for) noexcept;

/// Likewise of a session that is blocked: without a wait it was a model that says that it cannot go
/// on by itself.
[[nodiscard]] bool waits_for_person(const History& history) noexcept;

/// Whose child a session is.
enum class Family : std::uint8_t {
  root,  ///< nobody's: a person speaks with it
  child  ///< a session's, which gives it the next task
};

/// Returns true if the turn is over and the next step is a person's. Nothing goes on without the
/// model. More than a relay of requests saw it, because those may be a program's.
[[nodiscard]] bool is_turn_of_person(const History& history) noexcept;

/// Of a session in this state; of a trouble or a failed end while nobody acknowledged it.
[[nodiscard]] Attention attention_of(SessionState state) noexcept;

/// Pure.
[[nodiscard]] Standing standing_of(const StandingFacts& facts) noexcept;
/// Returns the standing of a judged session at `wall`.
[[nodiscard]] Standing standing_of(const Case& judged, WallTime wall,
                                   Family family = Family::root) noexcept;
/// Why its state is what it is: of one that ended how, else why its health is.
[[nodiscard]] std::string reason_of(const Case& judged, Instant now);
/// When its state began. `now` and `wall` are the same moment on both clocks.
[[nodiscard]] WallTime standing_since(const Case& judged, Instant now, WallTime wall) noexcept;

/// How lists are sorted: by attention, then by state; of equals the one first that has needed a
/// person for the longest, or that changed last where none is needed.
struct Urgency {
  Standing standing{};
  WallTime since{};
};
[[nodiscard]] bool is_before(const Urgency& a, const Urgency& b) noexcept;

/// Returns the cause of an alert about the session's present wait.
[[nodiscard]] AlertCause cause_of_wait(const History& history) noexcept;

}  // namespace watchdog
