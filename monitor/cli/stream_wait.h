/// \file
/// Waits for a session of a running monitor, on its stream.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/wait.h"

namespace watchdog::monitor {

/// The goal of a wait, like `Wait` for a file.
struct StreamWait {
  Endpoint::Options endpoint;
  std::string session;
  Awaited until;
  bool must_exist = false;
  /// Asks whether to go on although the session is stuck; empty: no person can be asked.
  std::function<bool(const std::string&)> ask;
  /// Receives a line about the session.
  std::function<void(const std::string&)> seen;
  /// Called once if the session is not there at first.
  std::function<void()> absent;
  std::stop_token stop;
};

/// Waits until the goal is met, or can no longer be met. A monitor that does not answer at first is
/// an error (`unavailable`). If it goes away later, the wait continues, and the stream continues at
/// its cursor. A refusal by the monitor is `misuse`. Returns the progress document, empty if the
/// monitor went away just then. Thread-safe.
[[nodiscard]] Result<std::string, WaitFailure> wait_on_stream(const StreamWait& asked);

}  // namespace watchdog::monitor
