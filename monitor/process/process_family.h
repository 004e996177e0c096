/// \file
/// A process and those that it started: which they are, and a signal to exactly one of them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "facts/process.h"

namespace watchdog::monitor {

/// All processes of this machine, as far as they are visible, in no order. Some microseconds each.
[[nodiscard]] std::vector<ProcessSample> processes_now();

/// A process with its descendants, as they become known. A descendant stays one when its parent
/// ends: then only the family remembers it. Use from one thread at a time.
class ProcessFamily {
 public:
  /// The start distinguishes the first process from a later one of the same number.
  ProcessFamily(std::int64_t pid, std::int64_t start_ticks);

  /// Finds the members among all processes, and returns those that were not known, parents first.
  /// A session that a member leads proves membership: only its descendants can be in it. A process
  /// group does so only if each process in it was a member before.
  std::vector<ProcessSample> fold(const std::vector<ProcessSample>& all);
  /// True if a member has or had this number.
  [[nodiscard]] bool knows(std::int64_t pid) const { return starts_.contains(pid); }
  /// The members that still run, parents first.
  [[nodiscard]] std::vector<ProcessSample> running(const std::vector<ProcessSample>& all) const;

 private:
  [[nodiscard]] bool has(const ProcessSample& process) const;
  void learn_groups(const std::vector<ProcessSample>& all);

  std::int64_t first_pid_;
  std::int64_t first_start_;
  std::map<std::int64_t, std::int64_t> starts_;  ///< By pid.
  std::vector<ProcessSample> members_;
  std::set<std::int64_t> own_sessions_;              ///< By the pid of their leader.
  std::map<std::int64_t, std::int64_t> own_groups_;  ///< Without strangers; the session of each.
};

/// The words of its command line; empty: it has ended, or is not accessible.
[[nodiscard]] std::vector<std::string> words_of_process(std::int64_t pid);
/// The same for people: in one line, without secrets, cut. Its short name if it has no words.
[[nodiscard]] std::string command_line_of(std::int64_t pid);
/// The user whose process it is; a number if the user has no name.
[[nodiscard]] std::string process_user(std::int64_t pid);

/// True if it is a shell that leads the session of a terminal and reads commands from it: somebody
/// is logged in there.
[[nodiscard]] bool is_login_shell(const ProcessSample& process,
                                  const std::vector<std::string>& words);

/// Sends a signal to exactly this process, never to a later one of the same number. Returns 0, also
/// if it has ended, or the error's number.
[[nodiscard]] int send_signal_to(const ProcessSample& process, int signal);

}  // namespace watchdog::monitor
