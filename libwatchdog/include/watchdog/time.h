/// \file
/// Two kinds of time that cannot be mixed up: ticks, which judging uses, and wall time, which is
/// only shown. Nothing but a Clock asks the machine what time it is.
#pragma once

#include <chrono>
#include <string>

namespace watchdog {

using Millis = std::chrono::milliseconds;

/// The time line of one store: CLOCK_BOOTTIME (it counts suspends) plus an offset kept for each
/// boot, so that it never runs backwards in a file, not even across reboots.
struct TickClock {
  using duration = Millis;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<TickClock, Millis>;
  static constexpr bool is_steady = true;
};

using Instant = TickClock::time_point;
using WallTime = std::chrono::time_point<std::chrono::system_clock, Millis>;

/// Later than everything.
inline constexpr Instant never = Instant::max();

/// Where time comes from. Thread-safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Since this machine started, suspends included. Never runs backwards.
  [[nodiscard]] virtual Millis since_boot() const noexcept = 0;
  /// What a calendar says. May jump either way; shown to people and never judged by.
  [[nodiscard]] virtual WallTime wall() const noexcept = 0;
  /// Which start of which machine `since_boot` counts from.
  [[nodiscard]] virtual std::string boot_id() const = 0;
};

/// The machine's own clock.
[[nodiscard]] const Clock& system_clock() noexcept;

}  // namespace watchdog
