/// \file
/// Waits for a session without sleeping: until something happens, never until a time has passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "watchdog/case.h"
#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/session.h"
#include "watchdog/time.h"
#include "watchdog/wait_rule.h"

namespace watchdog {

/// A session as a wait sees it; valid during the call that gets it.
struct Observed {
  const std::string& session;
  const Case& judged;  ///< The present state, elapsed time included.
  Instant now{};
  const WaitMemory& vigil;
  const SessionSpec& spec;

  /// Returns the progress document.
  [[nodiscard]] std::string document() const;
};

/// The goal of a wait, and its options. A plain value.
struct Wait {
  std::string session{};
  std::filesystem::path database{};  ///< Empty: default_database().
  Awaited until{};                   ///< Default: the session completes.
  /// For `Goal::condition`: called for the present session, and again after each of its events.
  std::function<bool(const Observed&)> condition{};
  /// Returns whether to go on although the session is stuck; false ends the wait as
  /// `user_cancelled_stuck`. Empty: the wait fails.
  std::function<bool(const Observed&)> ask{};
  /// Receives the session after each look, the first one at once; null until there is one.
  std::function<void(const Observed*)> seen{};
  /// Only a state change after this event counts.
  Seq after = 0;
  /// True: a missing session is an error. Otherwise the wait includes its start.
  bool must_exist = false;
  /// The process that is to start the session, if it is known: when it is gone without a session,
  /// the wait fails. 0: unknown.
  std::int64_t pid = 0;
  std::stop_token stop{};  ///< Ends the wait as `interrupted`.
  const Clock* clock = &system_clock();
};

/// The goal was met. A plain value.
struct Waited {
  Case judged{};
  Seq seq = 0;  ///< The newest event then: `Wait::after` of the next wait.
};

/// Why a wait ended without its goal.
enum class WaitEnd : std::uint8_t {
  ended,                 ///< the session ended, in another way or too early
  dead,                  ///< its process is gone and it did not end
  stuck,                 ///< it is stuck or looping, and stayed so
  user_cancelled_stuck,  ///< likewise, and `ask` returned false
  no_session,            ///< there is none, and none will start
  interrupted,           ///< `stop` was requested, or a signal came
  unavailable,           ///< the database cannot be read
  misuse                 ///< the wait could not have ended
};

template <>
struct Names<WaitEnd> {
  static constexpr std::string_view all[] = {
      "ended",      "dead",        "stuck",       "user_cancelled_stuck",
      "no_session", "interrupted", "unavailable", "misuse"};
};

/// An event of a session, for people. A plain value.
struct TimelineEntry {
  WallTime at{};
  std::string text{};
};

/// A session's events without heartbeats: the first and the last ones. A plain value.
struct Timeline {
  static constexpr std::size_t first_max = 4;
  static constexpr std::size_t last_max = 12;
  std::vector<TimelineEntry> first{};
  std::int64_t omitted = 0;
  std::vector<TimelineEntry> last{};
  std::int64_t heartbeats = 0;

  void add(TimelineEntry entry);
};

/// Returns an event or a change of health in one line, without long texts of agents.
[[nodiscard]] TimelineEntry timeline_entry(const Event& event);
[[nodiscard]] TimelineEntry timeline_entry(const Transition& transition);

/// Why a wait failed. A plain value.
struct WaitFailure {
  WaitEnd end = WaitEnd::misuse;
  std::string session{};
  std::string expected{};  ///< The goal of the wait.
  std::string last{};      ///< The session's last state; empty: there was no session.
  std::string why{};
  Lifecycle lifecycle = Lifecycle::running;  ///< How it ended, if it did.
  std::optional<Case> judged{};              ///< The session's judgement; empty: unknown here.
  Timeline timeline{};
  int signal = 0;  ///< The signal that interrupted it; 0: none.

  /// Returns all of it for people, several lines without a newline at the end.
  [[nodiscard]] std::string text() const;
};

/// Waits for a session in a file until the goal is met, or can no longer be met. It looks at once,
/// and then whenever a process appends to the file or the health would change by time. It judges by
/// itself, so it needs no monitor and is not affected by one. It fails at once when the session
/// ends otherwise or its process is gone, and when it stays stuck (see Awaited). Before it fails it
/// looks once more. Several waits for one session are allowed. Writes nothing. Callbacks run on the
/// waiting thread; one that throws is `misuse`, as is a wait within a callback of a tracker, whose
/// thread would then be blocked. Thread-safe.
[[nodiscard]] Result<Waited, WaitFailure> wait(const Wait& wait);

}  // namespace watchdog
