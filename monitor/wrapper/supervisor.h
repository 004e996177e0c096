/// \file
/// The supervisor process between the wrapper and the command.
#pragma once

#include <cstdint>

#include "wrapper/command.h"

namespace watchdog::monitor {

/// A message between supervisor and wrapper. A plain value.
struct SupervisorMessage {
  enum class Kind : std::uint8_t { begin, leave, begun, failed, stopped, exited };
  Kind kind = Kind::begin;
  int number = 0;  ///< A pid, an errno, a signal, a status.
};

/// In a forked process with one thread and all signals blocked: waits for `begin`, runs the
/// command, reports its state, and ends with `leave`. Ends the process.
[[noreturn]] void lead(const Launch& launch, int channel);

}  // namespace watchdog::monitor
