/// \file
/// Runs a program of the monitor's owner when a model server on this machine hangs. Keeps its
/// output for the bundles of the sessions that wait for that server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bundle/kept_looks.h"
#include "core/store_thread.h"
#include "net/url.h"

namespace watchdog::monitor {

/// Returns the words of a command with the process in the place of each `{pid}`. Pure.
[[nodiscard]] std::vector<std::string> command_for(const std::vector<std::string>& command,
                                                   std::int64_t pid);

/// Returns what a program printed: of `bytes` the beginning and the end. If something between them
/// is missing, lines that were cut there are left out as well, because half of a secret is not
/// found. Pure.
[[nodiscard]] std::string printed_text(std::string_view head, std::string_view tail,
                                       std::uint64_t bytes);

/// A thread that runs the program once for each hang, one run at a time. It does not run again for
/// the same process before something there has moved, and at most once a minute. Another request
/// that hangs meanwhile gets the earlier output.
class HangDiagnosis {
 public:
  struct Options {
    std::vector<std::string> command;  ///< Not empty; `{pid}` is the server's process.
    std::shared_ptr<KeptLooks> looks;  ///< Never null.
    std::function<bool()> is_paused;   ///< True: nothing runs now. Thread-safe.
    Millis look_every{1'000};
    Millis at_most{30'000};  ///< The program's running time, and that of all that it started.
    Millis rest{60'000};     ///< Between two runs for one process.
    /// Gets what an operator should know. Called from the thread.
    std::function<void(const std::string&)> log;
  };

  /// `store` must outlive it.
  HangDiagnosis(StoreThread& store, Options options);
  /// Ends a program that runs.
  ~HangDiagnosis();
  HangDiagnosis(const HangDiagnosis&) = delete;
  HangDiagnosis& operator=(const HangDiagnosis&) = delete;

  /// Takes a finding of the proxy about a request to this server. Never waits. Thread-safe.
  void found(const Url& server, const std::string& request, ServerState state);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
