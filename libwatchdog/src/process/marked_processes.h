/// \file
/// Processes that are known again by a variable of their environment, wherever they went.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/time.h"

namespace watchdog {

/// The variable that each program of run_process carries.
inline constexpr std::string_view mark_variable = "WATCHDOG_CALL";

/// Found processes, and how many of them did not end in time. A plain value.
struct MarkedEnd {
  struct Process {
    pid_t pid = 0;
    std::string name;  ///< Whatever bytes it chose.
  };
  std::vector<Process> found{};  ///< When it began.
  std::size_t left = 0;
};

/// Kills all processes with this mark except the calling one, repeatedly until there are none, for
/// at most `at_most`. Processes of other users are not visible. Reads the environment of every
/// accessible process.
[[nodiscard]] MarkedEnd end_marked(std::string_view mark, Millis at_most);

}  // namespace watchdog
