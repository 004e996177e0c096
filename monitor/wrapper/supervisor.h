/// \file
/// The supervisor process between the wrapper and the command.
#pragma once

#include <cstdint>

#include "wrapper/command.h"

namespace watchdog::monitor {

/// A message between supervisor and wrapper. A plain value.
struct SupervisorMessage {
  enum class Kind : std::uint8_t {
    begin,
    keep,  ///< With two files: passes on what comes out of the first to the second, to its end.
    leave,
    begun,
    failed,
    stopped,
    exited
  };
  Kind kind = Kind::begin;
  int number = 0;  ///< A pid, an errno, a signal, a status.
};

/// In a forked process with one thread and all signals blocked: waits for `begin`, runs the
/// command, and reports its state. It ends with `leave`, or later with the last output that it
/// keeps. Ends the process.
[[noreturn]] void lead(const Launch& launch, int channel);

}  // namespace watchdog::monitor
