/// \file
/// Waits that go on after their request was answered: the tasks of the protocol.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mcp/loop.h"
#include "mcp/rpc.h"
#include "mcp/waiting.h"

namespace watchdog::monitor::mcp {

/// Of a loop's steps alone. With a file, tasks survive the end of the process: the file has the
/// goal of each, and what came of it, but no text of a session.
class TaskBook {
 public:
  /// Running ones of one owner, and all that are kept.
  static constexpr std::size_t running_max = 100;
  static constexpr std::size_t kept_max = 1'000;
  /// How long the result of a task is kept.
  static constexpr Millis kept_for{3'600'000};
  static constexpr Millis poll_every{5'000};
  /// How long a wait that a restart interrupted is kept for its client.
  static constexpr Millis dormant_max{86'400'000};

  explicit TaskBook(Loop& loop) : loop_(loop) {}

  /// One task. Its `status`: working, completed or cancelled.
  struct Task {
    std::string id{};
    std::string owner{};
    std::string status = "working";
    std::string words{};
    WallTime created{};
    WallTime updated{};
    WaitGoal goal{};
    json result{};  ///< A tool's result; null: none yet.
    /// Null: it is over, or it goes on as soon as its client asks for it after a restart.
    std::shared_ptr<Waiting> waiting{};
    /// Called after each change; those of which the owner is gone are dropped.
    std::vector<std::pair<std::weak_ptr<void>, std::function<void(const Task&)>>> listeners{};

    [[nodiscard]] bool is_over() const { return status != "working"; }
  };

  /// Reads the tasks of an earlier process, and keeps all tasks in this file from now on. Call it
  /// before the first task. Errors: those of read_task_file().
  [[nodiscard]] Result<void> keep_in(std::filesystem::path file);
  /// Begins a wait as a task. It is in the file when this returns. Null: too many run, or the file
  /// cannot be written.
  [[nodiscard]] std::shared_ptr<Task> begin(std::shared_ptr<Source> source, WaitGoal goal);
  /// Null: the source's owner has no such task. A wait that a restart interrupted goes on.
  [[nodiscard]] std::shared_ptr<Task> find(const std::shared_ptr<Source>& source,
                                           const std::string& id);
  [[nodiscard]] std::vector<std::shared_ptr<Task>> all_of(const std::string& owner) const;
  /// Drops the tasks of these sessions, also from the file.
  void forget(std::span<const std::string> sessions);
  /// Ends all.
  void clear() { tasks_.clear(); }
  /// Ends the wait of a task, if it still runs.
  void cancel(Task& task);

 private:
  void start(const std::shared_ptr<Task>& task, std::shared_ptr<Source> source);
  void change(Task& task);
  void drop_old();
  /// True if the tasks are in the file, or there is none.
  bool save() const;

  Loop& loop_;
  std::filesystem::path file_;  ///< Empty: none.
  std::map<std::string, std::shared_ptr<Task>> tasks_;
};

/// Returns a task in the form of 2026-07-28, with its result; or in that of 2025-11-25. Pure.
[[nodiscard]] json task_json(const TaskBook::Task& task);
[[nodiscard]] json old_task_json(const TaskBook::Task& task);

}  // namespace watchdog::monitor::mcp
