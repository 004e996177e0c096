// A wait is answered in one of three ways: by a task, by a call that progress keeps open, or by a
// bounded answer that says how to go on. The client decides which by what it declares. Progress
// goes out when the session changed, and every 15 s while the session is known to be all right.
// Otherwise the call is not kept open: after 45 s the client learns how the session is.
#include <utility>

#include "mcp/peer.h"
#include "mcp/task_requests.h"
#include "mcp/tool_calls.h"

namespace watchdog::monitor::mcp {
void Peer::wait(const ExchangePtr& exchange, const json& arguments) {
  auto goal = goal_from(text_in(arguments, "session"), text_in(arguments, "until"));
  if (!goal) return exchange->finish(tool_error(goal.error().message));
  if (!session_of_uri(std::string(session_uri_begin) + goal->session))
    return exchange->finish(
        tool_error("session must be the id of a session, as `agents` lists it"));
  goal->after = number_in(arguments, "after", -1);
  if (exchange->supports_tasks && begin_task(context_.tasks, exchange, *goal)) return;
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

}  // namespace watchdog::monitor::mcp
