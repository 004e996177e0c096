/// \file
/// A time of day that a wrong wall clock cannot move once it is known.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog {

/// Follows the time since the machine started, so setting the wall clock does not move it. After a
/// start of the machine it continues at the wall clock's time, but never earlier than before. A
/// plain value that a directory keeps between processes.
struct TimeLine {
  /// Clocks that differ by more are wrong, and a jump by more may be an error.
  static constexpr Millis differ_max{3'600'000};

  std::string boot{};  ///< The start of the machine that `offset` belongs to; no blanks.
  Millis offset{};     ///< Time of day minus time since that start.
  WallTime last{};     ///< The newest time that was kept.
  WallTime leap{};     ///< Where it began, or last continued more than `differ_max` later.

  /// Continues the line that was kept (empty: there was none) with this clock.
  [[nodiscard]] static TimeLine continued(const std::optional<TimeLine>& kept, const Clock& clock);
  /// Reads what `text` returned. Nothing: it is something else.
  [[nodiscard]] static std::optional<TimeLine> from(std::string_view text);
  [[nodiscard]] std::string text() const;

  /// REQUIRES: the machine has not been started since `continued`.
  [[nodiscard]] WallTime now(const Clock& clock) const noexcept;
  /// Returns whether age may drop something: the wall clock agrees, and the leap is an hour old.
  [[nodiscard]] bool may_age(const Clock& clock) const noexcept;

  friend bool operator==(const TimeLine&, const TimeLine&) = default;
};

}  // namespace watchdog
