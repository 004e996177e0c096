#include "core/activity.h"

namespace watchdog::monitor {

Activity activity_of(const Case& judged, WallTime wall) noexcept {
  const auto [state, attention] = standing_of(judged, wall);
  switch (state) {
    case SessionState::dead:
    case SessionState::stuck:
    case SessionState::looping:
    case SessionState::silent:
      return Activity::stuck;
    case SessionState::suspect:
      return Activity::quiet;
    case SessionState::slow:
      return attention == Attention::watch ? Activity::quiet : Activity::working;
    case SessionState::needs_input:
      return Activity::waiting;
    case SessionState::waiting:
      // Children work.
      return attention == Attention::working ? Activity::working : Activity::waiting;
    case SessionState::starting:
    case SessionState::progressing:
      return Activity::working;
    case SessionState::idle:
      return judged.history.notes->idle_why.starts_with(idle_reports::goes_on) ? Activity::working
                                                                               : Activity::idle;
    case SessionState::failed:
    case SessionState::incomplete:
    case SessionState::your_turn:
    case SessionState::cancelled:
    case SessionState::completed:
      return Activity::idle;
    case SessionState::unknown:
      break;
  }
  return Activity::unknown;
}

}  // namespace watchdog::monitor
