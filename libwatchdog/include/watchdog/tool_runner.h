/// \file
/// The tools of an agent: runs the calls that its model requests, reports them to the session, and
/// accepts aborts from other processes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/executor.h"
#include "watchdog/model.h"
#include "watchdog/run.h"
#include "watchdog/tool.h"
#include "watchdog/tracker.h"
#include "watchdog/turns.h"

namespace watchdog {

/// The outcomes of a session's calls so far. A plain value.
struct ToolTally {
  std::int64_t calls = 0;  ///< Calls with an outcome.
  std::int64_t errors = 0;
  std::int64_t timeouts = 0;
  std::int64_t denied = 0;
  std::map<std::string, std::int64_t> timed_out{};  ///< Timeouts of each tool, at most 100 tools.
};

/// Reports turns and calls to a session: each call and its result, progress every five seconds,
/// timeouts, late returns. Thread-safe.
class ToolReporter {
 public:
  /// REQUIRES: the tracker outlives it.
  explicit ToolReporter(ProgressTracker& tracker) : tracker_(tracker) {}
  ~ToolReporter();
  ToolReporter(const ToolReporter&) = delete;
  ToolReporter& operator=(const ToolReporter&) = delete;

  void take(const ToolEvent& event);
  void take(const TurnEvent& event);
  /// From now on an abort of a turn or a call of the session, from any process, takes effect here.
  /// REQUIRES: the registry outlives this object.
  void obey(TurnRegistry& turns);
  [[nodiscard]] ToolTally tally() const;

 private:
  void take_result(const ToolEvent& event, const CallReport& report);

  ProgressTracker& tracker_;
  bool obeys_ = false;
  mutable std::mutex mutex_;
  ToolTally tally_;
};

/// An executor, its turns and their reports for one session. Thread-safe.
class ToolRunner {
 public:
  struct Parts {
    ProgressTracker& tracker;
    /// Gets a tool `session_status`, with which the agent can look at itself.
    std::shared_ptr<ToolRegistry> tools{};
    std::shared_ptr<ExecutionBudget> budget{};  ///< The run's.
    std::string agent{};
    /// Of the executor; `tools` and `observer` are filled in.
    ToolExecutor::Parts executor{};
    /// Receives each event as well. May be empty.
    std::function<void(const ToolEvent&)> observer{};
  };
  explicit ToolRunner(Parts parts, ExecutorOptions options = {});
  ~ToolRunner();
  ToolRunner(const ToolRunner&) = delete;
  ToolRunner& operator=(const ToolRunner&) = delete;

  /// Returns the definitions for ChatRequest::tools.
  [[nodiscard]] std::string definitions() const;

  /// Runs the calls that the model requested in this iteration, as a turn that ends with the run.
  /// Returns one report for each call, in their order.
  [[nodiscard]] std::vector<CallReport> carry_out(Iteration& now,
                                                  std::span<const ToolRequest> calls);

  [[nodiscard]] TurnRegistry& turns() noexcept;
  [[nodiscard]] ToolExecutor& executor() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Returns the outcomes for the conversation: one message of role `tool` for each.
[[nodiscard]] std::vector<ChatMessage> tool_messages(std::span<const CallReport> reports);

/// Repairs a conversation so that every API accepts it: each message with tool calls is followed by
/// exactly one answer for each of them, in their order. A missing answer is added as cancelled; an
/// answer without a call, or a second one, is dropped. Returns true if something was changed.
bool repair_history(std::vector<ChatMessage>& conversation);

}  // namespace watchdog
