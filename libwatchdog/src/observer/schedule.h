/// \file
/// When which session needs a look without a new event.
#pragma once

#include <deque>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "observer/call_looks.h"
#include "observer/live_sessions.h"
#include "observer/process_looks.h"

namespace watchdog {

/// A heap of dates. Later dates are corrected when the earlier one comes up, so heartbeats cost
/// nothing here. Use from the observer's thread.
class Schedule {
 public:
  Schedule(LiveSessions& sessions, const ProcessLooks& processes, const CallLooks& calls)
      : sessions_(sessions), processes_(processes), calls_(calls) {}

  /// Returns when the session needs a look.
  [[nodiscard]] Instant next_due(const LiveSession& session) const;
  /// Returns when the first of all needs one, or an earlier time; `never`: none does.
  [[nodiscard]] Instant first() const { return due_.empty() ? never : due_.top().first; }
  void enqueue(LiveSession& session);
  /// Removes the sessions that are due at `now`.
  [[nodiscard]] std::vector<SessionKey> drain(Instant now);
  void clear() { due_ = {}; }

 private:
  using Due = std::pair<Instant, SessionKey>;

  LiveSessions& sessions_;
  const ProcessLooks& processes_;
  const CallLooks& calls_;
  /// A vector would keep room for twice as many.
  std::priority_queue<Due, std::deque<Due>, std::greater<>> due_;
};

}  // namespace watchdog
