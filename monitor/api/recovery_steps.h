/// \file
/// Carries out the rules of recovery that need no hook: end_call and command. Follows what comes of
/// the acts of all rules.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/recovery.h"
#include "bundle/kept_looks.h"
#include "core/store_thread.h"

namespace watchdog::monitor {

/// A thread that looks at sessions with a confirmed verdict. An act is in the session's events
/// before it is done, so it happens at most once, also after a restart and with several monitors on
/// one database. One act is done at a time.
class RecoverySteps {
 public:
  struct Options {
    std::shared_ptr<Recovery> recovery;  ///< Never null.
    std::shared_ptr<KeptLooks> looks;    ///< Of sessions in trouble; never null.
    bool asks_git = true;                ///< Bundles of commands name changed files.
    Millis look_every{5'000};
    Millis grace{5'000};     ///< From SIGTERM to SIGKILL, for the processes of a call.
    Millis at_most{60'000};  ///< A command's running time. What it started may go on.
    /// Gets what an operator should know. Called from the thread.
    std::function<void(const std::string&)> log;
  };

  /// `store` must outlive it. Waits until the trials in the audit log are known.
  RecoverySteps(StoreThread& store, Options options);
  /// Ends a command that runs.
  ~RecoverySteps();
  RecoverySteps(const RecoverySteps&) = delete;
  RecoverySteps& operator=(const RecoverySteps&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
