// A task's id cannot be guessed, and a task belongs to the token that began it. A result is kept
// for an hour. If too many tasks are kept, the oldest results go first; running waits stay.
#include "mcp/task_book.h"

#include <algorithm>
#include <utility>

#include "facts/ids.h"
#include "mcp/brief.h"

namespace watchdog::monitor::mcp {

std::shared_ptr<TaskBook::Task> TaskBook::begin(std::shared_ptr<Source> source, WaitGoal goal) {
  drop_old();
  const auto owner = source->owner();
  const auto running = std::ranges::count_if(tasks_, [&](const auto& entry) {
    return entry.second->owner == owner && entry.second->waiting != nullptr;
  });
  if (static_cast<std::size_t>(running) >= running_max || tasks_.size() >= kept_max) return nullptr;
  const auto now = loop_.wall();
  auto task = std::make_shared<Task>(Task{.id = new_ulid(now) + new_ulid(now),
                                          .owner = owner,
                                          .words = "Nothing is known of it yet",
                                          .created = now,
                                          .updated = now});
  const std::weak_ptr<Task> weak = task;
  task->waiting =
      std::make_shared<Waiting>(loop_, std::move(source), std::move(goal),
                                Waiting::Listener{.changed =
                                                      [this, weak] {
                                                        if (const auto self = weak.lock()) {
                                                          self->words = self->waiting->words();
                                                          change(*self);
                                                        }
                                                      },
                                                  .over =
                                                      [this, weak](json result) {
                                                        if (const auto self = weak.lock()) {
                                                          self->status = "completed";
                                                          self->words = self->waiting->words();
                                                          self->result = std::move(result);
                                                          self->waiting.reset();
                                                          change(*self);
                                                        }
                                                      }});
  tasks_.emplace(task->id, task);
  task->waiting->begin();
  return task;
}

std::shared_ptr<TaskBook::Task> TaskBook::find(const std::string& owner, const std::string& id) {
  drop_old();
  const auto found = tasks_.find(id);
  return found == tasks_.end() || found->second->owner != owner ? nullptr : found->second;
}

std::vector<std::shared_ptr<TaskBook::Task>> TaskBook::all_of(const std::string& owner) const {
  std::vector<std::shared_ptr<Task>> found;
  for (const auto& [id, task] : tasks_)
    if (task->owner == owner) found.push_back(task);
  return found;
}

void TaskBook::cancel(Task& task) {
  if (!task.waiting) return;
  task.status = "cancelled";
  task.words = "The client cancelled the wait; the session goes on";
  task.waiting.reset();
  change(task);
}

void TaskBook::change(Task& task) {
  task.updated = loop_.wall();
  const auto listeners = task.listeners;
  for (const auto& [owner, listener] : listeners)
    if (const auto held = owner.lock()) listener(task);
  std::erase_if(task.listeners, [](const auto& entry) { return entry.first.expired(); });
}

void TaskBook::drop_old() {
  const auto now = loop_.wall();
  std::erase_if(tasks_, [&](const auto& entry) {
    return !entry.second->waiting && now - entry.second->updated > kept_for;
  });
  while (tasks_.size() >= kept_max) {
    auto oldest = tasks_.end();
    for (auto entry = tasks_.begin(); entry != tasks_.end(); ++entry) {
      const bool is_older =
          oldest == tasks_.end() || entry->second->updated < oldest->second->updated;
      if (!entry->second->waiting && is_older) oldest = entry;
    }
    if (oldest == tasks_.end()) return;
    tasks_.erase(oldest);
  }
}

json task_json(const TaskBook::Task& task) {
  json made = {{"taskId", task.id},
               {"status", task.status},
               {"statusMessage", task.words},
               {"createdAt", iso_time(task.created)},
               {"lastUpdatedAt", iso_time(task.updated)},
               {"ttlMs", nullptr},
               {"pollIntervalMs", TaskBook::poll_every.count()}};
  if (task.result.is_null()) return made;
  made["result"] = task.result;
  made["result"]["resultType"] = "complete";
  return made;
}

json old_task_json(const TaskBook::Task& task) {
  auto made = task_json(task);
  made.erase("ttlMs");
  made.erase("pollIntervalMs");
  made.erase("result");
  // A tool's result that is an error is a failed task in that revision.
  if (member(task.result, "isError") == true) made["status"] = "failed";
  made["ttl"] = nullptr;
  made["pollInterval"] = TaskBook::poll_every.count();
  return made;
}

}  // namespace watchdog::monitor::mcp
