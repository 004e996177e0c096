#include "api/hints.h"

#include <variant>

namespace watchdog::monitor {

std::vector<CallStep> call_steps(std::span<const Report> reports) {
  std::vector<CallStep> steps;
  for (const auto& report : reports) {
    const auto* outcome = std::get_if<Outcome>(&report.detail);
    if (report.kind == ReportKind::end) {
      if (outcome == nullptr || outcome->kind == OutcomeKind::completed)
        steps.push_back({.kind = CallStep::Kind::rest});
    } else if (report.kind == ReportKind::idle) {
      if (report.name.empty()) steps.push_back({.kind = CallStep::Kind::rest});
    } else if (!report.call_id.empty()) {
      if (report.kind == ReportKind::tool_call)
        steps.push_back({.kind = CallStep::Kind::call, .call = report.call_id});
      if (report.kind == ReportKind::tool_result || is_failure(report.kind))
        steps.push_back({.kind = CallStep::Kind::result, .call = report.call_id});
    }
  }
  return steps;
}

Hints::Session& Hints::at(std::string_view session) {
  if (sessions_.size() >= sessions_max && !sessions_.contains(std::string(session)))
    sessions_.clear();
  return sessions_[std::string(session)];
}

bool Hints::is_first(std::string_view session, HintKind kind) {
  const std::lock_guard guard(mutex_);
  auto& given = at(session).given;
  const auto bit = static_cast<std::uint8_t>(1U << static_cast<unsigned>(kind));
  if ((given & bit) != 0) return false;
  given = static_cast<std::uint8_t>(given | bit);
  return true;
}

void Hints::begin(std::string_view session) {
  const std::lock_guard guard(mutex_);
  at(session).followed = true;
}

void Hints::leave(std::string_view session) {
  const std::lock_guard guard(mutex_);
  auto& now = at(session);
  now.followed = false;
  now.open.clear();
}

Unpaired Hints::follow(std::string_view session, std::span<const CallStep> steps) {
  Unpaired unpaired;
  if (steps.empty()) return unpaired;
  const std::lock_guard guard(mutex_);
  auto& now = at(session);
  for (const auto& step : steps) {
    if (!now.followed) break;
    switch (step.kind) {
      case CallStep::Kind::call:
        now.open.insert(step.call);
        now.followed = now.open.size() <= calls_max;
        break;
      case CallStep::Kind::result:
        if (now.open.erase(step.call) == 0 && unpaired.result.empty()) unpaired.result = step.call;
        break;
      case CallStep::Kind::rest:
        if (!now.open.empty() && unpaired.call.empty()) unpaired.call = *now.open.begin();
        now.open.clear();
        break;
    }
  }
  if (!now.followed) now.open.clear();
  return unpaired;
}

bool is_bare_heartbeat(const Report& report) noexcept {
  if (report.kind != ReportKind::heartbeat) return false;
  const auto* beats = std::get_if<Heartbeats>(&report.detail);
  if (beats == nullptr) return true;
  return beats->source == Source::unsaid && !beats->iteration && beats->phase.empty();
}

std::string hint_text(HintKind kind, const std::string& about) {
  switch (kind) {
    case HintKind::bare_heartbeats:
      return "Heartbeats without iteration and phase show only that the process is alive. Send an "
             "iteration with each pass of the main loop: then a loop without progress is found.";
    case HintKind::unknown_kind:
      return "Ignored: " + about + ".";
    case HintKind::unknown_member:
      return "Not read: " + about + ".";
    case HintKind::call_without_result:
      return "The turn ended, but call \"" + about +
             "\" has no result. Report each result with the call_id of its call: a call "
             "without one counts as running.";
    case HintKind::result_without_call:
      return "Result \"" + about +
             "\" has no call. Report a tool_call with the same call_id before it: only pairs are "
             "compared to find loops.";
    case HintKind::cut_content:
      break;
  }
  return "Only the first 200 characters of long contents are kept. Create the session with "
         "\"content\": \"full\" to keep all.";
}

}  // namespace watchdog::monitor
