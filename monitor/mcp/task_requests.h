/// \file
/// Requests about tasks: `tasks/get` and its siblings, and a wait that becomes a task. Each answers
/// the exchange. Of a loop's steps alone.
#pragma once

#include "mcp/exchange.h"
#include "mcp/task_book.h"

namespace watchdog::monitor::mcp {

/// Answers with a new task for the wait. False: there are too many; the exchange is still open.
[[nodiscard]] bool begin_task(TaskBook& tasks, const ExchangePtr& exchange, const WaitGoal& goal);
void get_task(TaskBook& tasks, const ExchangePtr& exchange);
void update_task(TaskBook& tasks, const ExchangePtr& exchange);
/// Answers when the task is over.
void task_result(TaskBook& tasks, const ExchangePtr& exchange);
void list_tasks(TaskBook& tasks, const ExchangePtr& exchange);
void cancel_task(TaskBook& tasks, const ExchangePtr& exchange);

}  // namespace watchdog::monitor::mcp
