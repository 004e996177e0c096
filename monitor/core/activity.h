/// \file
/// Whether sessions are at work: the one question of programs that suspend, scale or bill.
#pragma once

#include <cstdint>
#include <string_view>

#include "judge/attention.h"

namespace watchdog::monitor {

/// The work of sessions in one word. Of several sessions, the first of these words speaks for all.
/// A program that suspends a machine must not stop work. Its owner wants to hear of trouble first.
enum class Activity : std::uint8_t {
  working,  ///< the agent, a child, or a command that goes on after the turn
  stuck,    ///< stuck, looping, dead or silent
  quiet,    ///< it should work, and nothing shows that it does
  waiting,  ///< for a person, quota, the model's server or the next try
  idle,     ///< its turn is over, or it ended
  unknown   ///< nothing is known yet
};

/// Of a session at `wall`. Pure.
[[nodiscard]] Activity activity_of(const Case& judged, WallTime wall) noexcept;

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::Activity> {
  static constexpr std::string_view all[] = {"working", "stuck", "quiet",
                                             "waiting", "idle",  "unknown"};
};
}  // namespace watchdog
