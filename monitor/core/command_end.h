/// \file
/// How a command of the monitor's owner ended, for its log and its events.
#pragma once

#include <string>

#include "text/figures.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {

/// `ended with 0`. `at_most`: the time after which the monitor ends it.
[[nodiscard]] inline std::string command_end(const Result<ProcessEnd>& end, Millis at_most) {
  if (!end) return "did not start: " + end.error().message;
  if (end->stopped) return "was ended after " + span_of(at_most);
  if (end->signal) return "was ended by signal " + std::to_string(*end->signal);
  return "ended with " + std::to_string(end->code.value_or(0));
}

}  // namespace watchdog::monitor
