/// \file
/// Decides when a wait is over: a pure function of the goal and of what was seen.
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

/// A goal. A plain value.
struct Awaited {
  Goal goal = Goal::outcome;
  OutcomeKind outcome = OutcomeKind::completed;  ///< Of `Goal::outcome`.
  HealthKind health = HealthKind::progressing;   ///< Of `Goal::health`.
  /// Of a state change: its type (`tool_call` for a finished call), empty: any; of a condition: its
  /// description.
  std::string what{};
  OnStuck on_stuck = OnStuck::ask;
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
  Lifecycle lifecycle = Lifecycle::running;
  HealthKind health = HealthKind::unknown;
  std::int64_t beats = 0;   ///< Loop heartbeats seen so far. Never decreases.
  std::int64_t rounds = 0;  ///< Finished rounds of calls seen so far; calls at once count as one.
  bool holds = false;       ///< The state change has happened, or the condition holds.
  bool gone = false;        ///< Its process is gone.
};

/// What a wait has seen so far: of bounded size. A plain value.
struct WaitMemory {
  SessionSample latest{};
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
void see(WaitMemory& vigil, const SessionSample& next) noexcept;
/// A person chose to go on: the trouble counts from now.
void forgive(WaitMemory& vigil) noexcept;
/// Returns the number of iterations of the present trouble: loop heartbeats, or rounds of calls,
/// whichever are more.
[[nodiscard]] std::int64_t further_iterations(const WaitMemory& vigil) noexcept;

enum class Ruling : std::uint8_t {
  go_on,
  met,
  ended,  ///< in another way than the goal
  dead,
  ask,  ///< ask whether to go on
  stuck
};

/// Decides whether the wait is over. Pure. The goal counts first, then an end, then trouble.
[[nodiscard]] Ruling ruling(const Awaited& awaited, const WaitMemory& vigil) noexcept;

/// Returns true for a state change of the type; empty: of any.
[[nodiscard]] bool is_change(const Report& report, std::string_view type) noexcept;

/// Counts iterations by events alone. A plain value.
struct IterationCount {
  std::int64_t beats = 0;
  std::int64_t rounds = 0;
  History position{};  ///< The position of the newest heartbeat.
  std::int64_t open_calls = 0;

  void take(const Event& event);
};

}  // namespace watchdog
