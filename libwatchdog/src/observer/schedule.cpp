#include "observer/schedule.h"

#include <algorithm>

namespace watchdog {

Instant Schedule::next_due(const LiveSession& session) const {
  if (is_end(session.judged.history.lifecycle)) return never;
  return std::min(
      {session.judged.health.valid_until, processes_.next(session), calls_.next(session)});
}

void Schedule::enqueue(LiveSession& session) {
  const auto at = next_due(session);
  if (at >= session.queued) return;
  session.queued = at;
  due_.emplace(at, session.judged.session);
}

std::vector<SessionKey> Schedule::drain(Instant now) {
  std::vector<SessionKey> sessions;
  while (!due_.empty() && due_.top().first <= now) {
    const auto [at, key] = due_.top();
    due_.pop();
    LiveSession* session = sessions_.find(key);
    if (session == nullptr || session->queued != at) continue;  // gone, or queued again for earlier
    session->queued = never;
    if (next_due(*session) <= now) {
      sessions.push_back(key);
    } else {
      enqueue(*session);
    }
  }
  return sessions;
}

}  // namespace watchdog
