/// \file
/// Waiting for a session without sleeping: until something happens, never until some time has
/// passed.
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
  const Case& judged;  ///< As of now, also by the time that passed.
  Instant now{};
  const Vigil& vigil;
  const SessionSpec& spec;

  /// The progress document.
  [[nodiscard]] std::string document() const;
};

/// What is waited for, and how. A plain value.
struct Wait {
  std::string session{};
  std::filesystem::path database{};  ///< Empty: default_database().
  Awaited until{};                   ///< Unless somebody says otherwise: that it completes.
  /// Of `Goal::condition`: asked about the session as it is, and again after each of its events.
  std::function<bool(const Observed&)> condition{};
  /// Whether to go on although the session is stuck; false ends the wait as `user_cancelled_stuck`.
  /// Empty: nobody can be asked, so it fails.
  std::function<bool(const Observed&)> ask{};
  /// Gets the session whenever something was seen, at first at once; null until there is one.
  std::function<void(const Observed*)> seen{};
  /// Only events after this one are the state change that is waited for.
  Seq after = 0;
  /// A session that is not there is an error. Else it is waited for until it starts.
  bool must_exist = false;
  /// The process that is to start the session, where it is known: when it is gone and there is no
  /// session, none will come. 0: unknown.
  std::int64_t pid = 0;
  std::stop_token stop{};  ///< Ends the wait as `interrupted`.
  const Clock* clock = &system_clock();
};

/// What was waited for has come. A plain value.
struct Waited {
  Case judged;
  Seq seq = 0;  ///< The newest event then: `Wait::after` of the next wait.
};

/// Why a wait ended without what it waited for.
enum class WaitEnd : std::uint8_t {
  ended,                 ///< the session did, in another way or too early
  dead,                  ///< its process is gone and it did not end
  stuck,                 ///< it is stuck or looping, and stayed so
  user_cancelled_stuck,  ///< likewise, and who was asked did not want to go on
  no_session,            ///< there is none, and none will come
  interrupted,           ///< somebody called the wait off, or a signal came
  unavailable,           ///< the database cannot be read
  misuse                 ///< it could not have ended well
};

template <>
struct Names<WaitEnd> {
  static constexpr std::string_view all[] = {
      "ended",      "dead",        "stuck",       "user_cancelled_stuck",
      "no_session", "interrupted", "unavailable", "misuse"};
};

/// Something that happened to a session, for people. A plain value.
struct TimelineEntry {
  WallTime at{};
  std::string text;
};

/// What happened to a session but for heartbeats: the first and the last of it. A plain value.
struct Timeline {
  static constexpr std::size_t first_max = 4;
  static constexpr std::size_t last_max = 12;
  std::vector<TimelineEntry> first;
  std::int64_t omitted = 0;
  std::vector<TimelineEntry> last;
  std::int64_t heartbeats = 0;

  void add(TimelineEntry entry);
};

/// An event or a change of health in one line, without what agents said at length.
[[nodiscard]] TimelineEntry timeline_entry(const Event& event);
[[nodiscard]] TimelineEntry timeline_entry(const Transition& transition);

/// Why a wait failed. A plain value.
struct WaitFailure {
  WaitEnd end = WaitEnd::misuse;
  std::string session;
  std::string expected;  ///< What was waited for.
  std::string last;      ///< How the session was last; empty: it never was.
  std::string why;
  Lifecycle lifecycle = Lifecycle::running;  ///< How it ended, if it did.
  std::optional<Case> judged;  ///< All that is known of it; empty: nothing, or not here.
  Timeline timeline;
  int signal = 0;  ///< That interrupted it; 0: none did.

  /// All of it for people, several lines without a newline at the end.
  [[nodiscard]] std::string text() const;
};

/// Waits for a session in a file until what is asked for is there, or it is clear that it will not
/// come. Looks at once, and then whenever somebody appends to the file or a judgement would change
/// by itself; judges on its own, so it needs no monitor, and one that runs, restarts or ends
/// changes nothing. Fails at once when the session ends otherwise or its process is gone, and when
/// it stays stuck (see Awaited). Before it fails it looks once more. Several may wait for one
/// session. Writes nothing. Callbacks run on the thread that waits; one that throws is `misuse`, as
/// is waiting within a callback of a tracker, whose thread would have to go on for anything to be
/// reported. Thread-safe.
[[nodiscard]] Result<Waited, WaitFailure> wait(const Wait& wait);

}  // namespace watchdog
