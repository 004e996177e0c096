#include "judge/source_note.h"

#include <algorithm>
#include <optional>

#include "judge/attention.h"

namespace watchdog {
namespace {

bool has_tokens(const Heartbeats& beats) {
  return std::ranges::any_of(beats.counters, [](const auto& counter) {
    return counter.first == "tokens" && counter.second > 0;
  });
}

std::optional<Told> told_by(const Event& event) {
  const auto& report = event.report;
  const auto& detail = report.detail;
  switch (report.kind) {
    case ReportKind::tool_call:
    case ReportKind::tool_progress:
      // Telemetry reports a call when it is over.
      if (event.origin != ReportOrigin::otlp) return Told::calls;
      return std::nullopt;
    case ReportKind::heartbeat:
      if (const auto* beats = std::get_if<Heartbeats>(&detail); beats && has_tokens(*beats))
        return Told::tokens;
      return std::nullopt;
    case ReportKind::budget:
      if (const auto* used = std::get_if<BudgetFigures>(&detail); used && used->tokens > 0)
        return Told::tokens;
      return std::nullopt;
    case ReportKind::wait:
      return is_for_person(report.name) ? std::optional(Told::questions) : std::nullopt;
    case ReportKind::end:
      return Told::end;
    case ReportKind::evidence:
      return Told::server;
    default:
      return std::nullopt;
  }
}

}  // namespace

WallTime newest_report(const History& history) {
  WallTime newest{};
  for (const auto& note : history.sources)
    if (note.origin != ReportOrigin::monitor) newest = std::max(newest, note.last);
  return newest;
}

bool is_older_than_hooks(const History& history, const Event& event) {
  if (event.origin != ReportOrigin::transcript) return false;
  return std::ranges::any_of(history.sources, [&](const SourceNote& note) {
    return note.origin == ReportOrigin::hooks && event.at < note.last;
  });
}

void note_source(History& history, const Event& event) {
  const auto* beats = std::get_if<Heartbeats>(&event.report.detail);
  // A merged row has the time of its last part.
  const bool is_merged = beats != nullptr && beats->first_stored != Instant{};
  const auto first = is_merged ? event.at - (event.tick - beats->first_stored) : event.at;
  auto& note = history.sources.note(event.origin);
  if (note.reports == 0) note = {.origin = event.origin, .first = first, .last = event.at};
  note.reports += beats != nullptr ? beats->count : 1;
  note.first = std::min(note.first, first);
  note.last = std::max(note.last, event.at);
  if (const auto told = told_by(event))
    note.told |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(*told));
}

}  // namespace watchdog
