/// \file
/// Waits that go on after their request was answered: the tasks of the protocol.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mcp/loop.h"
#include "mcp/rpc.h"
#include "mcp/waiting.h"

namespace watchdog::monitor::mcp {

/// Of a loop's steps alone. A task is not kept over the end of the process.
class TaskBook {
 public:
  /// Running ones of one owner, and all that are kept.
  static constexpr std::size_t running_max = 100;
  static constexpr std::size_t kept_max = 1'000;
  /// How long the result of a task is kept.
  static constexpr Millis kept_for{3'600'000};
  static constexpr Millis poll_every{5'000};

  explicit TaskBook(Loop& loop) : loop_(loop) {}

  /// One task. Its `status`: working, completed or cancelled.
  struct Task {
    std::string id{};
    std::string owner{};
    std::string status = "working";
    std::string words{};
    WallTime created{};
    WallTime updated{};
    json result{};  ///< A tool's result; null: none yet.
    std::shared_ptr<Waiting> waiting{};
    /// Called after each change; those of which the owner is gone are dropped.
    std::vector<std::pair<std::weak_ptr<void>, std::function<void(const Task&)>>> listeners{};
  };

  /// Begins a wait as a task. Null: too many run.
  [[nodiscard]] std::shared_ptr<Task> begin(std::shared_ptr<Source> source, WaitGoal goal);
  /// Null: there is none of this owner.
  [[nodiscard]] std::shared_ptr<Task> find(const std::string& owner, const std::string& id);
  [[nodiscard]] std::vector<std::shared_ptr<Task>> all_of(const std::string& owner) const;
  /// Ends all.
  void clear() { tasks_.clear(); }
  /// Ends the wait of a task, if it still runs.
  void cancel(Task& task);

 private:
  void change(Task& task);
  void drop_old();

  Loop& loop_;
  std::map<std::string, std::shared_ptr<Task>> tasks_;
};

/// Returns a task in the form of 2026-07-28, with its result; or in that of 2025-11-25. Pure.
[[nodiscard]] json task_json(const TaskBook::Task& task);
[[nodiscard]] json old_task_json(const TaskBook::Task& task);

}  // namespace watchdog::monitor::mcp
