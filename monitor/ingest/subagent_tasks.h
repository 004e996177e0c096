/// \file
/// The tasks of subagents, which their parents' calls name before they begin.
#pragma once

#include <deque>
#include <string>

#include "store/store.h"

namespace watchdog::monitor {

/// Hooks report the call of a tool that starts a subagent, with its task, and then a subagent's
/// start, without it. Remembers the newest calls. Use from one thread at a time.
class SubagentTasks {
 public:
  static constexpr std::size_t tasks_max = 256;

  /// Notes the tasks in a batch. The batch of a subagent's start gets the oldest task of its parent
  /// that nobody has, if possible one for its own kind of agent.
  void join(Batch& batch);

 private:
  struct Task {
    std::string session;  ///< The parent's.
    std::string agent;    ///< The kind that is to do it; empty: not said.
    std::string text;
  };
  void note(const std::string& session, const Report& call);

  std::deque<Task> tasks_;  ///< The newest at the end.
};

}  // namespace watchdog::monitor
