#include "proxy/sessions/trace_sessions.h"

namespace watchdog::monitor {

std::string TraceSessions::session_of(const std::string& trace, const std::string& guess) {
  auto session = telemetry_->session_of_trace(trace);
  const std::lock_guard guard(mutex_);
  if (session.empty()) {
    const auto found = joined_.find(guess);
    return found == joined_.end() ? std::string() : found->second;
  }
  if (!joined_.insert_or_assign(guess, session).second) return session;
  by_age_.push_back(guess);
  if (by_age_.size() > guesses_max) {
    joined_.erase(by_age_.front());
    by_age_.pop_front();
  }
  return session;
}

}  // namespace watchdog::monitor
