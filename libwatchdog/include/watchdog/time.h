/// \file
/// Two kinds of time as different types: ticks, which the judge uses, and wall time, which is only
/// shown. Only a Clock asks the machine for the time.
#pragma once

#include <chrono>
#include <string>

namespace watchdog {

/// A duration in milliseconds.
using Millis = std::chrono::milliseconds;

/// The time line of one store: CLOCK_BOOTTIME (it counts suspends) plus an offset for each boot, so
/// it never decreases in a file, not even across reboots.
struct TickClock {
  /// Required by std::chrono, as are the next ones.
  using duration = Millis;
  /// Required by std::chrono.
  using rep = duration::rep;
  /// Required by std::chrono.
  using period = duration::period;
  /// Required by std::chrono.
  using time_point = std::chrono::time_point<TickClock, Millis>;
  static constexpr bool is_steady = true;  ///< The store's ticks never run backwards.
};

/// A time on the line by which sessions are judged.
using Instant = TickClock::time_point;
/// A time for people, since 1970 in UTC.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Millis>;

/// Later than everything.
inline constexpr Instant never = Instant::max();

/// A source of time. Thread-safe.
class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  /// Returns the time since this machine started, suspends included. Never decreases.
  [[nodiscard]] virtual Millis since_boot() const noexcept = 0;
  /// Returns calendar time. It may jump either way; it is shown to people and not used by the
  /// judge.
  [[nodiscard]] virtual WallTime wall() const noexcept = 0;
  /// Identifies the boot from which `since_boot` counts.
  [[nodiscard]] virtual std::string boot_id() const = 0;
};

/// The machine's own clock.
[[nodiscard]] const Clock& system_clock() noexcept;

}  // namespace watchdog
