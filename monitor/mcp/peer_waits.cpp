// A wait is answered in one of three ways: by a task, by a call that progress keeps open, or by a
// bounded answer that says how to go on. The client decides which by what it declares. Progress
// goes out when the session changed, and every 15 s while the session is known to be all right.
// Otherwise the call is not kept open: after 45 s the client learns how the session is.
#include <utility>

#include "mcp/peer.h"
#include "mcp/tool_calls.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr const char* related_task = "io.modelcontextprotocol/related-task";

}  // namespace

void Peer::wait(const ExchangePtr& exchange, const json& arguments) {
  auto goal = goal_from(text_in(arguments, "session"), text_in(arguments, "until"));
  if (!goal) return exchange->finish(tool_error(goal.error().message));
  if (!session_of_uri(std::string(session_uri_begin) + goal->session))
    return exchange->finish(
        tool_error("session must be the id of a session, as `agents` lists it"));
  goal->after = number_in(arguments, "after", -1);
  if (exchange->supports_tasks && wait_as_task(exchange, *goal)) return;
  const bool reports_progress = !exchange->progress_token().is_null();
  // The exchange owns the wait; the wait names it weakly.
  const std::weak_ptr<Exchange> open = exchange;
  const auto own = std::make_shared<std::weak_ptr<Waiting>>();
  Waiting::Listener listener;
  listener.over = [open](json result) {
    if (const auto self = open.lock()) self->finish(std::move(result));
  };
  if (reports_progress)
    listener.changed = [open, own] {
      const auto self = open.lock();
      const auto waiting = own->lock();
      if (self && waiting) self->progress(static_cast<double>(waiting->seq()), waiting->words());
    };
  const auto waiting = std::make_shared<Waiting>(context_.loop, exchange->source, std::move(*goal),
                                                 std::move(listener));
  *own = waiting;
  exchange->work = waiting;
  waiting->begin();
  if (reports_progress) return keep_alive(open, waiting, Millis{0});
  context_.loop.after(Millis{1'000 * number_in(arguments, "seconds", 50)}, [open, own] {
    const auto self = open.lock();
    const auto still = own->lock();
    if (self && still) self->finish(still->not_yet());
  });
}

void Peer::keep_alive(const std::weak_ptr<Exchange>& exchange,
                      const std::weak_ptr<Waiting>& waiting, Millis quiet) {
  context_.loop.after(progress_every, [weak = weak_from_this(), exchange, waiting, quiet] {
    const auto self = weak.lock();
    const auto open = exchange.lock();
    const auto still = waiting.lock();
    if (!self || !open || !still || open->is_over()) return;
    const auto now_quiet = still->is_good() ? Millis{0} : quiet + progress_every;
    if (now_quiet >= quiet_max) return open->finish(still->not_yet());
    if (now_quiet == Millis{0}) open->progress(static_cast<double>(still->seq()), still->words());
    self->keep_alive(exchange, waiting, now_quiet);
  });
}

bool Peer::wait_as_task(const ExchangePtr& exchange, const WaitGoal& goal) {
  const auto task = context_.tasks.begin(exchange->source, goal);
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

/// Returns the task that a request names, or null after it answered with an error.
std::shared_ptr<TaskBook::Task> Peer::task_of(const ExchangePtr& exchange) {
  auto task = context_.tasks.find(exchange->source, text_in(exchange->params, "taskId"));
  if (!task)
    exchange->fail(rpc_invalid_params, "there is no such task; its result may have been dropped");
  return task;
}

void Peer::get_task(const ExchangePtr& exchange) {
  const auto task = task_of(exchange);
  if (!task) return;
  exchange->finish(exchange->is_modern() ? task_json(*task) : old_task_json(*task));
}

void Peer::update_task(const ExchangePtr& exchange) {
  // No task here asks its client for anything.
  if (task_of(exchange)) exchange->finish(json::object());
}

void Peer::task_result(const ExchangePtr& exchange) {
  const auto task = task_of(exchange);
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

void Peer::list_tasks(const ExchangePtr& exchange) {
  json list = json::array();
  for (const auto& task : context_.tasks.all_of(exchange->source->owner()))
    list.push_back(old_task_json(*task));
  exchange->finish({{"tasks", std::move(list)}});
}

void Peer::cancel_task(const ExchangePtr& exchange) {
  const auto task = task_of(exchange);
  if (!task) return;
  if (!exchange->is_modern() && task->is_over())
    return exchange->fail(rpc_invalid_params, "the task is over already: " + task->status);
  context_.tasks.cancel(*task);
  exchange->finish(exchange->is_modern() ? json::object() : old_task_json(*task));
}

}  // namespace watchdog::monitor::mcp
