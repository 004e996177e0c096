/// \file
/// When a wait is over: a pure function of what is asked and of what was seen so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/case.h"
#include "watchdog/health.h"
#include "watchdog/history.h"
#include "watchdog/names.h"
#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog {

/// What kind of thing is waited for.
enum class Goal : std::uint8_t {
  outcome,       ///< the session ends in one way
  end,           ///< it ends, however
  health,        ///< it has one health
  state_change,  ///< it got somewhere
  condition      ///< something that only who waits can tell
};

template <>
struct Names<Goal> {
  static constexpr std::string_view all[] = {"outcome", "end", "health", "state-change",
                                             "condition"};
};

/// What becomes of a wait whose session is stuck or looping and stays so.
enum class OnStuck : std::uint8_t {
  ask,   ///< somebody says whether to go on; where nobody can be asked it fails
  fail,  ///< it fails
  keep   ///< it goes on
};

template <>
struct Names<OnStuck> {
  static constexpr std::string_view all[] = {"ask", "fail", "keep"};
};

/// What is waited for. A plain value.
struct Awaited {
  Goal goal = Goal::outcome;
  OutcomeKind outcome = OutcomeKind::completed;  ///< Of `Goal::outcome`.
  HealthKind health = HealthKind::progressing;   ///< Of `Goal::health`.
  /// Of a state change: its type (`tool_call` for a finished call), empty: any; of a condition:
  /// what it is, in words.
  std::string what;
  OnStuck on_stuck = OnStuck::ask;
  /// How many further iterations a session may be stuck or looping. A verdict that is taken back
  /// meanwhile is forgiven: false alarms are those that the session's next steps refute, so a test
  /// fails only for one that three more steps bear out. Time alone adds nothing to it.
  std::int64_t further_max = 3;
  /// Somebody starts the agent again when it dies: that its process is gone is then no end, until
  /// the session's health is `dead`.
  bool restarts = false;
};

/// `completed`, `failed`, `incomplete`, `cancelled`, `end`, `health=NAME`, `state-change`,
/// `state-change=TYPE`. Errors: `invalid`.
[[nodiscard]] Result<Awaited> awaited_from(std::string_view text);
/// Likewise, and back; a condition in its own words.
[[nodiscard]] std::string text_of(const Awaited& awaited);

/// How a session is at one moment. A plain value.
struct Sighting {
  Lifecycle lifecycle = Lifecycle::running;
  HealthKind health = HealthKind::unknown;
  std::int64_t beats = 0;   ///< Heartbeats of its loop that were seen so far. Never falls.
  std::int64_t rounds = 0;  ///< Likewise calls, those at once counted once, that are over.
  bool holds = false;       ///< The state change has happened, or the condition holds.
  bool gone = false;        ///< Its process is known to be gone.
};

/// What a wait has seen so far: bounded, however long it lasts. A plain value.
struct Vigil {
  Sighting latest;
  /// When the trouble began that lasts, or somebody last said to go on.
  std::optional<Sighting> trouble;
};

/// True for a health with which a wait fails if it lasts.
[[nodiscard]] constexpr bool is_stuck(HealthKind health) noexcept {
  return health == HealthKind::stuck || health == HealthKind::looping;
}

/// After which event the trouble began that lasts, by a session's changes of health, oldest first;
/// nothing where there is none.
[[nodiscard]] std::optional<Seq> stuck_since(const std::vector<Transition>& changes) noexcept;

/// Adds what is seen next.
void see(Vigil& vigil, const Sighting& next) noexcept;
/// Somebody said to go on: what lasts counts from now.
void forgive(Vigil& vigil) noexcept;
/// For how many iterations the trouble has lasted: heartbeats of the loop, or rounds of calls,
/// whichever were more.
[[nodiscard]] std::int64_t further_iterations(const Vigil& vigil) noexcept;

enum class Ruling : std::uint8_t {
  go_on,
  met,
  ended,  ///< otherwise than asked for
  dead,
  ask,  ///< whether to go on with what is stuck
  stuck
};

/// Whether the wait is over, and why. Pure. What was asked for counts before everything else, and
/// an end before any trouble.
[[nodiscard]] Ruling ruling(const Awaited& awaited, const Vigil& vigil) noexcept;

/// True if this event is a state change of the type; empty: of any.
[[nodiscard]] bool is_change(const Report& report, std::string_view type) noexcept;

/// Counts iterations by events alone. A plain value.
struct IterationCount {
  std::int64_t beats = 0;
  std::int64_t rounds = 0;
  History position;  ///< What the newest heartbeat said of it.
  std::int64_t open_calls = 0;

  void take(const Event& event);
};

}  // namespace watchdog
