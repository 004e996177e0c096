/// \file
/// Ends the processes of a session on this machine.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/endpoint.h"
#include "process/process_family.h"
#include "watchdog/report.h"

namespace watchdog::monitor {

/// Use once, from one thread.
class AgentEnd {
 public:
  struct Options {
    std::string server;  ///< The monitor's URL; empty: it is not known.
    bool json = false;   ///< Standard output is JSON.
  };
  /// The endpoint must outlive it.
  AgentEnd(Endpoint& endpoint, std::string session, Options options);

  /// Shows what would be ended, and ends nothing. Returns the exit code: `exit_failed` if nothing
  /// would be.
  int show();
  /// Gives the agent this time to leave by itself. Then names the processes and ends them: SIGTERM,
  /// and SIGKILL to those that remain for 2 s. Returns the exit code.
  int carry_out(std::chrono::milliseconds grace);

 private:
  /// A process that must not be ended, and the reason as the end of a sentence. A plain value.
  struct Protected {
    std::int64_t pid = 0;
    std::int64_t start_ticks = 0;  ///< 0: of any process of this number.
    std::string why;
  };
  /// A process that would be ended, for people. A plain value.
  struct Shown {
    std::int64_t pid = 0;
    std::string user;
    std::string why;
    std::string command;
  };

  /// Finds the session's process. Empty: it has exited. Errors: this command may end no process.
  Result<std::optional<ProcessFacts>> find();
  /// The processes that starts of a session name, the newest first.
  Result<std::vector<ProcessFacts>> processes_of(const std::string& session);
  /// Collects what must not be ended.
  Result<void> protect(const ProcessFacts& agent);
  Result<void> protect_other_sessions();
  /// The reason why one of them must not be ended.
  [[nodiscard]] std::optional<std::string> refusal(
      const std::vector<ProcessSample>& processes) const;
  /// Adds what is there now to the family. Error: the reason why its end is refused.
  Result<std::vector<ProcessSample>> look();
  [[nodiscard]] Shown shown(const ProcessSample& process) const;
  void name(const std::vector<ProcessSample>& processes) const;
  /// Signals each process; what they start meanwhile, too. Error: the first refusal.
  Result<void> signal(int number);
  /// True once all of the family are gone; waits for that, at most `time`.
  [[nodiscard]] bool all_leave_within(std::chrono::milliseconds time) const;

  Endpoint& endpoint_;
  const std::string session_;
  const Options options_;
  ProcessFacts agent_;
  std::vector<ProcessFacts> proven_;  ///< Of the session, the newest first.
  std::vector<Protected> protected_;
  std::optional<ProcessFamily> family_;
};

}  // namespace watchdog::monitor
