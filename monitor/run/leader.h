/// \file
/// The process between who runs a command and the command.
#pragma once

#include <cstdint>

#include "run/command.h"

namespace watchdog::monitor {

/// What the two tell each other. A plain value.
struct LeaderMessage {
  enum class Kind : std::uint8_t { begin, leave, begun, failed, stopped, exited };
  Kind kind = Kind::begin;
  int number = 0;  ///< A pid, an errno, a signal, a status.
};

/// In a forked process with one thread and all signals blocked: waits for `begin`, runs the
/// command, tells what becomes of it, and ends with `leave`. Ends the process.
[[noreturn]] void lead(const Launch& launch, int channel);

}  // namespace watchdog::monitor
