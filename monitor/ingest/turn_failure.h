/// \file
/// What a failed turn of an agent means for its session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Why a turn has no answer: as a word if the agent has one, and in its text. A plain value.
struct TurnFailure {
  std::string kind{};
  std::string text{};
  std::string more{};       ///< Its other texts: one of them may say when a limit ends.
  std::int64_t status = 0;  ///< HTTP; 0: not said.
};

/// Returns the subject of the wait after a failed turn: only a person resumes it. Pure.
[[nodiscard]] std::string_view wait_after(const TurnFailure& failure);

/// Returns the reports of a turn that failed: it is over, its error, and the wait that follows.
/// `now`: texts like "resets 9pm" mean the next 9pm. Pure.
[[nodiscard]] std::vector<Report> failed_turn(const TurnFailure& failure, WallTime now);

}  // namespace watchdog::monitor
