/// \file
/// Waiting for a session of a monitor that runs: its stream tells what happens.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <stop_token>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/wait.h"

namespace watchdog::monitor {

/// What is waited for, as `Wait` has it for a file.
struct StreamWait {
  Endpoint::Options endpoint;
  std::string session;
  Awaited until;
  bool must_exist = false;
  /// Whether to go on with what is stuck, given how it is; empty: nobody can be asked.
  std::function<bool(const std::string&)> ask;
  /// Gets what can be told of it in a line.
  std::function<void(const std::string&)> seen;
  /// Called once if the session is not there at first.
  std::function<void()> absent;
  std::stop_token stop;
};

/// Waits until what is asked for is there, or it is clear that it will not come. A monitor that
/// does not answer at first is an error (`unavailable`); one that goes away later is waited for,
/// and the stream goes on where it ended. What the monitor refuses is `misuse`. Gives the progress
/// document, empty if the monitor went away just then. Thread-safe.
[[nodiscard]] Result<std::string, WaitFailure> wait_on_stream(const StreamWait& asked);

/// How a session is, in one line, safe for the terminal.
[[nodiscard]] std::string situation_line(const nlohmann::json& document);

}  // namespace watchdog::monitor
