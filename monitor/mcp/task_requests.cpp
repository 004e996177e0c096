#include "mcp/task_requests.h"

#include <utility>

namespace watchdog::monitor::mcp {
namespace {

constexpr const char* related_task = "io.modelcontextprotocol/related-task";

/// Returns the task that a request names, or null after it answered with an error.
std::shared_ptr<TaskBook::Task> task_of(TaskBook& tasks, const ExchangePtr& exchange) {
  auto task = tasks.find(exchange->source, text_in(exchange->params, "taskId"));
  if (!task)
    exchange->fail(rpc_invalid_params, "unknown task; the monitor may have dropped its result");
  return task;
}

}  // namespace

bool begin_task(TaskBook& tasks, const ExchangePtr& exchange, const WaitGoal& goal) {
  const auto task = tasks.begin(exchange->source, goal);
  if (!task) return false;
  if (exchange->is_modern()) {
    auto result = task_json(*task);
    result["resultType"] = "task";
    exchange->finish(std::move(result));
  } else {
    exchange->finish({{"task", old_task_json(*task)}});
  }
  return true;
}

void get_task(TaskBook& tasks, const ExchangePtr& exchange) {
  const auto task = task_of(tasks, exchange);
  if (!task) return;
  exchange->finish(exchange->is_modern() ? task_json(*task) : old_task_json(*task));
}

void update_task(TaskBook& tasks, const ExchangePtr& exchange) {
  // No task here asks its client for anything.
  if (task_of(tasks, exchange)) exchange->finish(json::object());
}

void task_result(TaskBook& tasks, const ExchangePtr& exchange) {
  const auto task = task_of(tasks, exchange);
  if (!task) return;
  const auto answer = [](Exchange& open, const TaskBook::Task& done) {
    if (done.result.is_null())
      return open.fail(rpc_invalid_params, "the task was cancelled: it has no result");
    auto result = done.result;
    result["_meta"] = {{related_task, {{"taskId", done.id}}}};
    open.finish(std::move(result));
  };
  if (task->is_over()) return answer(*exchange, *task);
  const auto held = std::make_shared<int>(0);
  exchange->work = held;
  task->listeners.emplace_back(
      held, [weak = std::weak_ptr<Exchange>(exchange), answer](const TaskBook::Task& changed) {
        const auto open = weak.lock();
        if (open && changed.is_over()) answer(*open, changed);
      });
}

void list_tasks(TaskBook& tasks, const ExchangePtr& exchange) {
  json list = json::array();
  for (const auto& task : tasks.all_of(exchange->source->owner()))
    list.push_back(old_task_json(*task));
  exchange->finish({{"tasks", std::move(list)}});
}

void cancel_task(TaskBook& tasks, const ExchangePtr& exchange) {
  const auto task = task_of(tasks, exchange);
  if (!task) return;
  if (!exchange->is_modern() && task->is_over())
    return exchange->fail(rpc_invalid_params, "the task is over already: " + task->status);
  tasks.cancel(*task);
  exchange->finish(exchange->is_modern() ? json::object() : old_task_json(*task));
}

}  // namespace watchdog::monitor::mcp
