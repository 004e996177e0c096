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
#include <string_view>
#include <vector>

#include "watchdog/health.h"
#include "watchdog/history.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"
#include "watchdog/time.h"

namespace watchdog {

/// The kind of goal.
enum class Goal : std::uint8_t {
  outcome,       ///< the session ends in one way
  end,           ///< it ends, however
  health,        ///< it has one health
  state_change,  ///< it made progress
  condition      ///< a condition that only the caller can check
};

template <>
struct Names<Goal> {
  static constexpr std::string_view all[] = {"outcome", "end", "health", "state-change",
                                             "condition"};
};

/// The reaction to a session that is stuck or looping and stays so.
enum class OnStuck : std::uint8_t {
  ask,   ///< a person decides; fails if no person can be asked
  fail,  ///< it fails
  keep   ///< it goes on
};

template <>
struct Names<OnStuck> {
  static constexpr std::string_view all[] = {"ask", "fail", "keep"};
};

/// The reaction to a session that is suspect or quiet at this moment.
enum class OnDoubt : std::uint8_t {
  keep,  ///< it goes on
  fail   ///< it fails
};

template <>
struct Names<OnDoubt> {
  static constexpr std::string_view all[] = {"keep", "fail"};
};

/// A goal. A plain value.
struct Awaited {
  Goal goal = Goal::outcome;                     ///< What to wait for.
  OutcomeKind outcome = OutcomeKind::completed;  ///< Of `Goal::outcome`.
  HealthKind health = HealthKind::progressing;   ///< Of `Goal::health`.
  /// Of a state change: its type (`tool_call` for a finished call), empty: any; of a condition: its
  /// description.
  std::string what{};
  OnStuck on_stuck = OnStuck::ask;     ///< What to do if the session stays stuck.
  OnDoubt on_suspect = OnDoubt::keep;  ///< What to do if it is suspect,
  OnDoubt on_quiet = OnDoubt::keep;    ///< or quiet, see Pattern::quiet.
  /// How many further iterations a session may be stuck or looping. A conclusion that is revoked
  /// meanwhile is forgiven: the next steps refute false alarms, so a test fails only after three
  /// more confirming steps. Time alone adds nothing.
  std::int64_t further_max = 3;
  /// A supervisor restarts the agent when it dies: a gone process is then not an end until the
  /// session's health is `dead`.
  bool restarts = false;
};

/// `completed`, `failed`, `incomplete`, `cancelled`, `end`, `health=NAME`, `state-change`,
/// `state-change=TYPE`. Errors: `invalid`.
[[nodiscard]] Result<Awaited> awaited_from(std::string_view text);
/// Returns the text of a goal; of a condition its own words.
[[nodiscard]] std::string text_of(const Awaited& awaited);

/// The state of a session at one moment. A plain value.
struct SessionSample {
  Lifecycle lifecycle = Lifecycle::running;  ///< As the agent reported it.
  HealthKind health = HealthKind::unknown;   ///< As the monitor concludes it.
  std::int64_t beats = 0;                    ///< Loop heartbeats seen so far. Never decreases.
  std::int64_t rounds = 0;  ///< Finished rounds of calls seen so far; calls at once count as one.
  bool holds = false;       ///< The state change has happened, or the condition holds.
  bool gone = false;        ///< Its process is gone.
  bool quiet = false;       ///< Nothing shows that it works, see Pattern::quiet.
};

/// What a wait has seen so far: of bounded size. A plain value.
struct WaitMemory {
  SessionSample latest{};  ///< The newest sample.
  /// When the present trouble began, or a person last chose to go on.
  std::optional<SessionSample> trouble{};
};

/// True for a health with which a wait fails if it lasts.
[[nodiscard]] constexpr bool is_stuck(HealthKind health) noexcept {
  return health == HealthKind::stuck || health == HealthKind::looping;
}

/// Returns the event after which the present trouble began, from a session's changes of health,
/// oldest first; nothing without trouble.
[[nodiscard]] std::optional<Seq> stuck_since(const std::vector<Transition>& changes) noexcept;

/// Adds the next sample.
void see(WaitMemory& memory, const SessionSample& next) noexcept;
/// A person chose to go on: the trouble counts from now.
void forgive(WaitMemory& memory) noexcept;
/// Returns the number of iterations of the present trouble: loop heartbeats, or rounds of calls,
/// whichever are more.
[[nodiscard]] std::int64_t further_iterations(const WaitMemory& memory) noexcept;

/// The next step of a wait.
enum class Ruling : std::uint8_t {
  go_on,
  met,
  ended,  ///< in another way than the goal
  dead,
  ask,  ///< ask whether to go on
  stuck,
  suspect,
  quiet
};

/// Decides whether the wait is over. Pure. The goal counts first, then an end, then trouble.
[[nodiscard]] Ruling ruling(const Awaited& awaited, const WaitMemory& memory) noexcept;

/// Returns true for a state change of the type; empty: of any.
[[nodiscard]] bool is_change(const Report& report, std::string_view type) noexcept;

/// Counts iterations by events alone. A plain value.
struct IterationCount {
  std::int64_t beats = 0;       ///< Loop heartbeats.
  std::int64_t rounds = 0;      ///< Finished rounds of calls.
  History position{};           ///< The position of the newest heartbeat.
  std::int64_t open_calls = 0;  ///< Calls without a result.

  /// Folds in the session's next event.
  void fold(const Event& event);
  /// Its name before 0.2; goes with 0.3.
  void take(const Event& event) { fold(event); }
};

/// A session as a wait sees it; valid during the call that gets it.
struct Observed {
  const std::string& session;  ///< The session's id.
  const Case& judged;          ///< The present state, elapsed time included.
  Instant now{};               ///< The time of the look, on the file's time line.
  const WaitMemory& memory;    ///< Samples that the wait has seen so far.
  const SessionSpec& spec;     ///< The properties of the session.

  /// Returns the progress document.
  [[nodiscard]] std::string document() const;
};

/// The goal of a wait, and its options. A plain value.
struct Wait {
  std::string session{};             ///< The session's id. Required.
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
  std::stop_token stop{};                ///< Ends the wait as `interrupted`.
  const Clock* clock = &system_clock();  ///< The clock of the wait.
};

/// The goal was met. A plain value.
struct Waited {
  Case judged{};  ///< The session as it was then.
  Seq seq = 0;    ///< The newest event then: `Wait::after` of the next wait.
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
  misuse,                ///< the wait could not have ended
  suspect,               ///< it is suspect, and the wait was to fail then
  quiet                  ///< it is quiet, and the wait was to fail then
};

template <>
struct Names<WaitEnd> {
  static constexpr std::string_view all[] = {
      "ended",      "dead",        "stuck",       "user_cancelled_stuck",
      "no_session", "interrupted", "unavailable", "misuse",
      "suspect",    "quiet"};
};

/// An event of a session, for people. A plain value.
struct TimelineEntry {
  WallTime at{};       ///< When it happened.
  std::string text{};  ///< One line.
};

/// A session's events without heartbeats: the first and the last ones. A plain value.
struct Timeline {
  static constexpr std::size_t first_max = 4;  ///< Oldest events that are kept.
  static constexpr std::size_t last_max = 12;  ///< Newest events that are kept.
  std::vector<TimelineEntry> first{};          ///< The oldest events.
  std::int64_t omitted = 0;                    ///< The number of events between them.
  std::vector<TimelineEntry> last{};           ///< The newest events.
  std::int64_t heartbeats = 0;                 ///< The number of heartbeats.

  /// Adds the next event.
  void add(TimelineEntry entry);
};

/// Returns an event or a change of health in one line, without long texts of agents.
[[nodiscard]] TimelineEntry timeline_entry(const Event& event);
/// Likewise for a change of health.
[[nodiscard]] TimelineEntry timeline_entry(const Transition& transition);

/// Why a wait failed. A plain value.
struct WaitFailure {
  WaitEnd end = WaitEnd::misuse;  ///< How the wait ended.
  std::string session{};          ///< The session's id.
  std::string expected{};         ///< The goal of the wait.
  std::string last{};             ///< The session's last state; empty: there was no session.
  std::string why{};              ///< The cause, for people.
  Lifecycle lifecycle = Lifecycle::running;  ///< How it ended, if it did.
  std::optional<Case> judged{};              ///< The session's judgement; empty: unknown here.
  Timeline timeline{};                       ///< Events of the session.
  int signal = 0;                            ///< The signal that interrupted it; 0: none.

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

/// While an object lives, a wait of this process that gets SIGTERM, SIGINT or SIGHUP looks once
/// more and writes its timeline to standard error. Then it restores the previous handlers and
/// raises the signal again. Without a wait, or at the second signal, the signal acts at once. An
/// ignored signal stays ignored. Of several objects the first one counts, and the last one to be
/// destroyed restores the handlers. It has no effect for code that sets handlers of these signals
/// meanwhile. Thread-safe.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;
};

}  // namespace watchdog
