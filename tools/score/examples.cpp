#include "score/examples.h"

#include "facts/digest.h"
#include "ingest/trace.h"
#include "text/json_writer.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

/// Time plays no part in features.
constexpr Instant example_tick{Millis{1'000'000}};

Event event_in(Report report, Seq seq) {
  mark(report);
  if (auto* beats = std::get_if<Heartbeats>(&report.detail))
    beats->first = beats->last = example_tick;
  return {.seq = seq,
          .session = 1,
          .prev = seq - 1,
          .tick = example_tick,
          .at = WallTime{example_tick.time_since_epoch()},
          .report = std::move(report)};
}

}  // namespace

Result<std::optional<Example>> example_of(const std::filesystem::path& file, const Label& label) {
  // Its twin in the other source is the same run.
  const bool twice = label.overlaps_whowhen && label.source != "whowhen";
  if (label.outcome == RunOutcome::unknown || twice) return std::optional<Example>{};
  auto trace = Trace::open(file);
  if (!trace) return trace.error();
  ExampleFold fold;
  Seq seq = 0;
  while (true) {
    auto line = trace->next();
    if (!line) return line.error();
    if (!*line || (*line)->report.kind == ReportKind::end) break;
    fold.fold(event_in(std::move((*line)->report), ++seq));
  }
  auto example = fold.example();
  example.agent = label.agent;
  // The tasks themselves are other people's words.
  example.task = hexadecimal(digest_of(label.task_key));
  example.split = label.split;
  example.end =
      label.outcome == RunOutcome::success ? ExampleEnd::finished : ExampleEnd::unfinished;
  return std::optional(std::move(example));
}

}  // namespace watchdog::monitor
