/// \file
/// What a wait still tells when the process is told to end.
#pragma once

namespace watchdog {

/// While one lives, a wait of this process that SIGTERM, SIGINT or SIGHUP finds looks once more,
/// writes to standard error what it saw, and only then lets the signal take its course: the
/// handlers before are back, and the signal is raised again. Where nobody waits, or at the second
/// signal, it takes its course at once. A signal that was ignored stays ignored. Of several objects
/// the first one counts, and the last one to go puts the handlers back. For who sets handlers of
/// these signals meanwhile it does nothing. Thread-safe.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;
};

}  // namespace watchdog
