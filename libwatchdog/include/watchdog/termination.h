/// \file
/// What a wait prints when a signal ends the process.
#pragma once

namespace watchdog {

/// While an object lives, a wait of this process that gets SIGTERM, SIGINT or SIGHUP looks once
/// more and writes its timeline to standard error. Then it restores the previous handlers and
/// raises the signal again. Without a wait, or at the second signal, the signal acts at once. An
/// ignored signal stays ignored. Of several objects the first one counts, and the last one to be
/// destroyed restores the handlers. It has no effect for code that sets handlers of these signals
/// meanwhile. Thread-safe.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;
};

}  // namespace watchdog
