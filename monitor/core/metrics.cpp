#include "core/metrics.h"

#include <algorithm>

namespace watchdog::monitor {

void Histogram::observe(std::chrono::nanoseconds took) noexcept {
  const auto seconds = std::chrono::duration<double>(took).count();
  const auto* bound = std::lower_bound(bounds.begin(), bounds.end(), seconds);
  buckets_[static_cast<std::size_t>(bound - bounds.begin())].add();
  nanoseconds_.add(took.count());
}

double Histogram::sum_seconds() const noexcept {
  return static_cast<double>(nanoseconds_.count()) / 1e9;
}

RouteGroup group_of(std::string_view target) noexcept {
  const auto path = target.substr(0, target.find('?'));
  const auto begins = [&](std::string_view prefix) { return path.starts_with(prefix); };
  if (path.ends_with("/stream")) return RouteGroup::streams;
  if (path.ends_with("/events") || path.ends_with("/transitions")) return RouteGroup::events;
  if (begins("/api/autonomous/progress") || begins("/api/chat/")) return RouteGroup::progress;
  if (begins("/api/autonomous/check-status")) return RouteGroup::checks;
  if (begins("/api/autonomous/")) return RouteGroup::sessions;
  if (begins("/api/turns/")) return RouteGroup::turns;
  if (begins("/api/alerts")) return RouteGroup::alerts;
  if (begins("/api/")) return RouteGroup::access;
  if (begins("/v1/")) return RouteGroup::telemetry;
  if (path == "/healthz" || path == "/readyz") return RouteGroup::health;
  return path == "/metrics" ? RouteGroup::metrics : RouteGroup::page;
}

void Metrics::count_request(RouteGroup group, int status) noexcept {
  const auto hundreds = static_cast<StatusClass>(std::clamp(status / 100, 1, 5) - 1);
  requests[static_cast<std::size_t>(group)][hundreds].add();
}

void Metrics::count_event(const Event& event) noexcept {
  const auto& report = event.report;
  events[report.kind].add();
  if (event.late) late.add();
  if (report.kind == ReportKind::wait)
    waits[named<WaitSubject>(report.name).value_or(WaitSubject::other)].add();
  if (const auto* beats = std::get_if<Heartbeats>(&report.detail)) heartbeats.add(beats->count);
  if (const auto* outcome = std::get_if<Outcome>(&report.detail);
      outcome != nullptr && !event.late) {
    const auto* reason = std::ranges::find(reasons::all, outcome->reason);
    ended[static_cast<std::size_t>(reason - std::begin(reasons::all))][outcome->kind].add();
  }
  const auto* opinion = std::get_if<Opinion>(&report.detail);
  if (opinion == nullptr || report.event_id.empty() || report.name == "self") return;
  if (opinion->state == CheckState::done) verdicts[opinion->verdict].add();
  if (opinion->state > CheckState::pending) unanswered[opinion->state].add();
}

}  // namespace watchdog::monitor
