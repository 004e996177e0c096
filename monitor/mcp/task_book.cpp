// A task's id cannot be guessed, and a task belongs to the token that began it. A result is kept
// for an hour. If too many tasks are kept, the oldest results go first; running waits stay.
// The file is replaced when a task begins, when the event is known from which on it looks, and when
// it is over. A wait needs the permissions of its client, which are in no file. So after a restart
// it goes on when the client asks for the task. It misses no state change and no end meanwhile,
// because those are stored.
#include "mcp/task_book.h"

#include <algorithm>
#include <utility>

#include "facts/ids.h"
#include "mcp/brief.h"
#include "mcp/exchange.h"
#include "mcp/task_file.h"
#include "privacy/redaction.h"

namespace watchdog::monitor::mcp {
namespace {

std::int64_t wall_ms(WallTime at) {
  return at.time_since_epoch().count();
}

json line_from(const TaskBook::Task& task) {
  json line = {{"id", task.id},
               {"owner", task.owner},
               {"status", task.status},
               {"session", task.goal.session},
               {"until", redact_identifier(task.goal.text)},  // as names are stored
               {"after", task.goal.after},
               {"created", wall_ms(task.created)},
               {"updated", wall_ms(task.updated)}};
  if (task.status != "completed") return line;
  const auto& result = member(task.result, "structuredContent");
  line["came"] = member(result, "came");
  line["end"] = member(result, "end");
  if (result.is_object()) line["after"] = member(result, "after");
  return line;
}

/// Returns the result of a wait that was over before a restart. The session's state of then is not
/// known any more.
json former_result(const json& line, const WaitGoal& goal) {
  if (!member(line, "came").is_boolean())
    return tool_error("The wait failed before the monitor was restarted. Call wait again");
  const auto end = text_in(line, "end");
  json made = {
      {"session", goal.session},
      {"until", goal.text},
      {"came", line["came"]},
      {"end", end.empty() ? json() : json(end)},
      {"why", "the wait was over before the monitor was restarted; agent shows the session"},
      {"after", std::max<std::int64_t>(goal.after, 0)},
      {"continue", nullptr},
      {"agent", nullptr}};
  bound(made, result_bytes_max);
  return tool_result(std::move(made));
}

/// Null: the line is not one of a task.
std::shared_ptr<TaskBook::Task> task_from(const json& line) {
  const auto session = text_in(line, "session");
  auto goal = goal_from(session, text_in(line, "until"));
  const auto status = text_in(line, "status");
  const bool is_known = status == "working" || status == "completed" || status == "cancelled";
  if (!goal || !is_session_id(session) || !is_known || text_in(line, "id").empty()) return nullptr;
  goal->after = std::max<std::int64_t>(number_in(line, "after", -1), -1);
  auto task = std::make_shared<TaskBook::Task>(
      TaskBook::Task{.id = text_in(line, "id"),
                     .owner = text_in(line, "owner"),
                     .status = status,
                     .words = status == "working" ? "The monitor was restarted; the wait goes on"
                                                  : "The wait is over",
                     .created = WallTime{Millis{number_in(line, "created")}},
                     .updated = WallTime{Millis{number_in(line, "updated")}},
                     .goal = *goal});
  if (status == "completed") task->result = former_result(line, *goal);
  return task;
}

}  // namespace

Result<void> TaskBook::keep_in(std::filesystem::path file) {
  const auto lines = read_task_file(file);
  if (!lines) return lines.error();
  file_ = std::move(file);
  for (const auto& line : *lines) {
    auto task = task_from(line);
    if (task && tasks_.size() < kept_max) tasks_.emplace(task->id, std::move(task));
  }
  drop_old();
  return {};
}

std::shared_ptr<TaskBook::Task> TaskBook::begin(std::shared_ptr<Source> source, WaitGoal goal) {
  drop_old();
  const auto owner = source->owner();
  const auto running = std::ranges::count_if(tasks_, [&](const auto& entry) {
    return entry.second->owner == owner && !entry.second->is_over();
  });
  if (static_cast<std::size_t>(running) >= running_max || tasks_.size() >= kept_max) return nullptr;
  const auto now = loop_.wall();
  auto task = std::make_shared<Task>(Task{.id = new_ulid(now) + new_ulid(now),
                                          .owner = owner,
                                          .words = "Nothing is known of it yet",
                                          .created = now,
                                          .updated = now,
                                          .goal = std::move(goal)});
  tasks_.emplace(task->id, task);
  if (!save()) {
    tasks_.erase(task->id);
    return nullptr;
  }
  start(task, std::move(source));
  return task;
}

void TaskBook::start(const std::shared_ptr<Task>& task, std::shared_ptr<Source> source) {
  const std::weak_ptr<Task> weak = task;
  const auto changed = [this, weak] {
    const auto self = weak.lock();
    if (!self) return;
    // After a restart it has to go on from here, not from then on.
    if (self->goal.after < 0) {
      self->goal.after = self->waiting->seq();
      (void)save();
    }
    self->words = self->waiting->words();
    change(*self);
  };
  const auto over = [this, weak](json result) {
    const auto self = weak.lock();
    if (!self) return;
    self->status = "completed";
    self->words = self->waiting->words();
    self->result = std::move(result);
    self->waiting.reset();
    self->updated = loop_.wall();
    (void)save();
    change(*self);
  };
  task->waiting = std::make_shared<Waiting>(loop_, std::move(source), task->goal,
                                            Waiting::Listener{.changed = changed, .over = over});
  task->waiting->begin();
}

std::shared_ptr<TaskBook::Task> TaskBook::find(const std::shared_ptr<Source>& source,
                                               const std::string& id) {
  drop_old();
  const auto found = tasks_.find(id);
  if (found == tasks_.end() || found->second->owner != source->owner()) return nullptr;
  const auto& task = found->second;
  if (!task->is_over() && !task->waiting) start(task, source);
  return task;
}

std::vector<std::shared_ptr<TaskBook::Task>> TaskBook::all_of(const std::string& owner) const {
  std::vector<std::shared_ptr<Task>> found;
  for (const auto& [id, task] : tasks_)
    if (task->owner == owner) found.push_back(task);
  return found;
}

void TaskBook::cancel(Task& task) {
  if (task.is_over()) return;
  task.status = "cancelled";
  task.words = "The client cancelled the wait; the session goes on";
  task.waiting.reset();
  task.updated = loop_.wall();
  (void)save();
  change(task);
}

void TaskBook::forget(std::span<const std::string> sessions) {
  const auto dropped = std::erase_if(tasks_, [&](const auto& entry) {
    return std::ranges::find(sessions, entry.second->goal.session) != sessions.end();
  });
  if (dropped > 0) (void)save();
}

bool TaskBook::save() const {
  if (file_.empty()) return true;
  std::vector<json> lines;
  for (const auto& [id, task] : tasks_) lines.push_back(line_from(*task));
  return write_task_file(file_, lines).ok();
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
  const auto dropped = std::erase_if(tasks_, [&](const auto& entry) {
    const auto& task = *entry.second;
    return !task.waiting && now - task.updated > (task.is_over() ? kept_for : dormant_max);
  });
  // A session that was erased is not named there for ever.
  if (dropped > 0) (void)save();
  while (tasks_.size() >= kept_max) {
    auto oldest = tasks_.end();
    for (auto entry = tasks_.begin(); entry != tasks_.end(); ++entry) {
      const bool is_older =
          oldest == tasks_.end() || entry->second->updated < oldest->second->updated;
      if (entry->second->is_over() && is_older) oldest = entry;
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
