/// \file
/// Runs its owner's command when a wait with an end is over and the agent has not gone on.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/store_thread.h"

namespace watchdog::monitor {

/// A thread that looks for sessions whose wait is over. It stores an event in the session before
/// it runs the command. So the command runs at most once for each wait, also after a restart, and
/// with several monitors on one database. One command runs at a time.
class ReadyCommand {
 public:
  struct Options {
    std::vector<std::string> command;  ///< The program and its arguments; no shell.
    /// `KEY:VALUE` of sessions for which it also runs. Of others the monitor must have found the
    /// process, or `run` must have started it: anybody on this machine can report a wait.
    std::vector<std::string> labels{};
    /// After the end of the wait. Agents that go on by themselves do so within this time, and the
    /// proxy asks for a person after a minute.
    Millis grace{20'000};
    Millis look_every{5'000};
    Millis at_most{60'000};  ///< The command's running time. What it started may go on.
    /// Gets what an operator should know. Called from the thread.
    std::function<void(const std::string&)> log;
  };

  /// `store` must outlive it.
  ReadyCommand(StoreThread& store, Options options);
  /// Ends a command that runs.
  ~ReadyCommand();
  ReadyCommand(const ReadyCommand&) = delete;
  ReadyCommand& operator=(const ReadyCommand&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
