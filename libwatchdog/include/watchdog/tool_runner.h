/// \file
/// The tools of an agent: what its model asks for is carried out, told to whoever watches the
/// session, and can be called off from elsewhere.
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

/// What the calls of a session came to so far. A plain value.
struct ToolTally {
  std::int64_t calls = 0;  ///< That have an outcome.
  std::int64_t errors = 0;
  std::int64_t timeouts = 0;
  std::int64_t denied = 0;
  std::map<std::string, std::int64_t> timed_out;  ///< How often each tool did, at most 100 tools.
};

/// Tells a session what happens to its turns and calls: each call and its result, progress every
/// five seconds, timeouts, late returns. Thread-safe.
class ToolReporter {
 public:
  /// REQUIRES: the tracker outlives it.
  explicit ToolReporter(ProgressTracker& tracker) : tracker_(tracker) {}
  ~ToolReporter();
  ToolReporter(const ToolReporter&) = delete;
  ToolReporter& operator=(const ToolReporter&) = delete;

  void take(const ToolEvent& event);
  void take(const TurnEvent& event);
  /// From now on who aborts a turn or a call of the session, in whatever process, reaches it here.
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
    /// A tool `session_status` is added, by which the agent can look at itself.
    std::shared_ptr<ToolRegistry> tools;
    std::shared_ptr<ExecutionBudget> budget{};  ///< The run's.
    std::string agent{};
    /// Of the executor; `tools` and `observer` are filled in.
    ToolExecutor::Parts executor{};
    /// Sees each event as well. May be empty.
    std::function<void(const ToolEvent&)> observer{};
  };
  explicit ToolRunner(Parts parts, ExecutorOptions options = {});
  ~ToolRunner();
  ToolRunner(const ToolRunner&) = delete;
  ToolRunner& operator=(const ToolRunner&) = delete;

  /// For ChatRequest::tools.
  [[nodiscard]] std::string definitions() const;

  /// What the model asked for in this iteration, as a turn that ends with the run: as many reports
  /// as calls, in their order.
  [[nodiscard]] std::vector<CallReport> carry_out(Iteration& now,
                                                  std::span<const ToolRequest> calls);

  [[nodiscard]] TurnRegistry& turns() noexcept;
  [[nodiscard]] ToolExecutor& executor() noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The outcomes as the conversation keeps them: a message of role `tool` each.
[[nodiscard]] std::vector<ChatMessage> tool_messages(std::span<const CallReport> reports);

/// Makes a conversation one that every API takes: behind each message with tool calls stands
/// exactly one answer for each of them, in their order. What is missing was interrupted and is
/// said to be cancelled; what answers nothing, or a second time, is dropped. True if something was
/// changed.
bool repair_history(std::vector<ChatMessage>& conversation);

}  // namespace watchdog
