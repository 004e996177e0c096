#include "judge/process_proof.h"

#include <algorithm>

namespace watchdog {

bool is_proven(const ProcessFacts& process, ReportOrigin origin) {
  return process.known_by != KnownBy::report || origin == ReportOrigin::hooks ||
         origin == ReportOrigin::proxy;
}

const ProcessFacts* process_started(const History& history, const Event& event) {
  const auto* process = std::get_if<ProcessFacts>(&event.report.detail);
  if (process == nullptr || process->pid <= 0 || process->pid > INT32_MAX) return nullptr;
  const bool is_of_run =
      std::any_of(history.sources.begin(), history.sources.end(),
                  [](const SourceNote& note) { return note.origin == ReportOrigin::run; });
  const bool is_taken =
      !is_of_run || event.origin == ReportOrigin::run || is_proven(*process, event.origin);
  return is_taken ? process : nullptr;
}

}  // namespace watchdog
