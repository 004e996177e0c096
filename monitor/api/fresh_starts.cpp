#include "api/fresh_starts.h"

#include <algorithm>

namespace watchdog::monitor {

std::vector<std::string> FreshStarts::note(const HookEvent& event, WallTime now) {
  const auto folder = event.spec.labels.find("cwd");
  const auto in = folder == event.spec.labels.end() ? std::string() : folder->second;
  const bool begins =
      std::ranges::find(event.reports, ReportKind::start, &Report::kind) != event.reports.end();
  const std::lock_guard guard(mutex_);
  std::erase_if(starts_, [&](const Start& start) {
    return start.session == event.session || now - start.at > fresh_for;
  });
  if (event.resumes) {
    std::vector<std::string> unused;
    std::erase_if(starts_, [&](const Start& start) {
      const bool is_same = start.agent == event.spec.agent && start.folder == in;
      if (is_same) unused.push_back(start.session);
      return is_same;
    });
    return unused;
  }
  if (begins && event.spec.parent.empty() && !in.empty()) {
    if (starts_.size() >= starts_max) starts_.pop_front();
    starts_.push_back({event.session, event.spec.agent, in, now});
  }
  return {};
}

}  // namespace watchdog::monitor
