/// \file
/// Tasks that the proxy itself answers for: calls that take long, and tasks that it gave up.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "mcp/rpc.h"
#include "watchdog/time.h"

namespace watchdog::monitor::mcp {

/// They end with the program, and so with the tool server.
class OwnTasks {
 public:
  /// Beyond: the oldest that are over go.
  static constexpr std::size_t kept_max = 1'000;
  static constexpr Millis poll_every{5'000};

  struct Task {
    std::string id{};
    std::string status = "working";
    std::string words{};
    WallTime created{};
    WallTime updated{};
    json result{};  ///< Null: none yet.
    bool is_modern = true;

    [[nodiscard]] bool is_over() const { return status != "working"; }
  };

  /// `id`: empty: a new one that nobody can guess. Null: too many run.
  Task* begin(std::string id, bool is_modern, WallTime now);
  /// Returns the task with this id, or null.
  [[nodiscard]] Task* find(const std::string& id);
  static void settle(Task& task, json result, std::string words, WallTime now);
  /// The call of a task has its result; nothing happens if the task is over.
  void finish(const std::string& id, WallTime now, json result);

 private:
  void drop_oldest();
  std::map<std::string, Task> tasks_;
};

/// In the form of its revision, with its result.
[[nodiscard]] json task_form(const OwnTasks::Task& task);

}  // namespace watchdog::monitor::mcp
