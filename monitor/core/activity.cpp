#include "core/activity.h"

#include "judge/unwell_child.h"

namespace watchdog::monitor {

Activity activity_of(const Case& judged, WallTime wall) noexcept {
  const auto [state, attention] = standing_of(judged, wall);
  // A program that suspends a machine must not stop the children that are well.
  const auto& history = judged.history;
  if (unwell_child::says(history, unwell_child::others_work)) return Activity::working;
  switch (state) {
    case SessionState::dead:
    case SessionState::stuck:
    case SessionState::looping:
    case SessionState::silent:
      return Activity::stuck;
    case SessionState::suspect:
      return Activity::quiet;
    case SessionState::slow:
      return attention == Attention::working ? Activity::working : Activity::quiet;
    case SessionState::needs_input:
      return Activity::waiting;
    case SessionState::waiting:
      // Children work.
      return attention == Attention::working ? Activity::working : Activity::waiting;
    case SessionState::starting:
    case SessionState::progressing:
      return Activity::working;
    case SessionState::idle:
      return history.notes->idle_why.starts_with(idle_reports::goes_on) ? Activity::working
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
