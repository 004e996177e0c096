#include "mcp/proxy/own_tasks.h"

#include <utility>

#include "facts/ids.h"
#include "mcp/brief.h"

namespace watchdog::monitor::mcp {

OwnTasks::Task* OwnTasks::begin(std::string id, bool is_modern, WallTime now) {
  drop_oldest();
  if (tasks_.size() >= kept_max) return nullptr;
  if (id.empty()) id = new_ulid(now) + new_ulid(now);
  auto& task = tasks_[id];
  task = {.id = id, .created = now, .updated = now, .is_modern = is_modern};
  return &task;
}

OwnTasks::Task* OwnTasks::find(const std::string& id) {
  const auto found = tasks_.find(id);
  return found == tasks_.end() ? nullptr : &found->second;
}

void OwnTasks::settle(Task& task, json result, std::string words, WallTime now) {
  task.status = "completed";
  task.result = std::move(result);
  task.words = std::move(words);
  task.updated = now;
}

void OwnTasks::finish(const std::string& id, WallTime now, json result) {
  auto* task = find(id);
  if (task == nullptr || task->is_over()) return;
  const bool has_failed = member(result, "isError") == true;
  settle(*task, std::move(result), has_failed ? "The call failed" : "The call is done", now);
}

void OwnTasks::drop_oldest() {
  while (tasks_.size() >= kept_max) {
    auto oldest = tasks_.end();
    for (auto entry = tasks_.begin(); entry != tasks_.end(); ++entry) {
      const bool is_older =
          oldest == tasks_.end() || entry->second.updated < oldest->second.updated;
      if (entry->second.is_over() && is_older) oldest = entry;
    }
    if (oldest == tasks_.end()) return;
    tasks_.erase(oldest);
  }
}

json task_form(const OwnTasks::Task& task) {
  json made = {{"taskId", task.id},
               {"status", task.status},
               {"statusMessage", task.words},
               {"createdAt", iso_time(task.created)},
               {"lastUpdatedAt", iso_time(task.updated)}};
  if (!task.is_modern) {
    made["ttl"] = nullptr;
    made["pollInterval"] = OwnTasks::poll_every.count();
    // A tool's result that is an error is a failed task in that revision.
    if (member(task.result, "isError") == true) made["status"] = "failed";
    return made;
  }
  made["resultType"] = "complete";
  made["ttlMs"] = nullptr;
  made["pollIntervalMs"] = OwnTasks::poll_every.count();
  if (!task.result.is_null()) {
    made["result"] = task.result;
    made["result"]["resultType"] = "complete";
  }
  return made;
}

}  // namespace watchdog::monitor::mcp
