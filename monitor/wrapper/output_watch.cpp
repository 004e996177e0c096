#include "wrapper/output_watch.h"

#include <utility>

#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

Report state_change(const char* type, std::string data) {
  Report report;
  report.kind = ReportKind::state_change;
  report.name = type;
  report.content = std::move(data);
  return report;
}

}  // namespace

OutputWatch::OutputWatch(Recognition recognition, OutputTally& tally,
                         std::function<void(Report)> say)
    : recognition_(std::move(recognition)), tally_(tally), say_(std::move(say)) {}

bool OutputWatch::has_room() {
  const auto now = system_clock().since_boot();
  if (now - second_ >= Millis{1'000}) {
    second_ = now;
    reported_ = 0;
  }
  return ++reported_ <= reported_per_second_max;
}

void OutputWatch::feed_line(std::string_view line) {
  if (auto event = recognition_.event_in(line)) {
    say_(std::move(*event));
  } else if (recognition_.finds(line) && news_.is_new(line) && has_room()) {
    say_(state_change("output", redactor_.redacted(line.substr(0, LineReader::line_bytes_max))));
  }
  if (!recognition_.is_idle()) redactor_.pass(line);
  feed_agent(line);
}

void OutputWatch::feed_agent(std::string_view line) {
  const bool had_begun = agent_.has_begun();
  for (auto& report : agent_.read(line)) say_(std::move(report));
  if (!had_begun && agent_.has_begun()) lines_.set_line_bytes_max(AgentStream::line_bytes_max);
}

bool OutputWatch::is_idle() const {
  return recognition_.is_idle() && agent_.is_over();
}

void OutputWatch::feed(std::string_view bytes) {
  tally_.bytes += bytes.size();
  tally_.lines += newlines_in(bytes);
  if (!is_idle()) lines_.feed(bytes, [this](std::string_view line) { feed_line(line); });
  const auto progress = sequence_.feed(bytes);
  if (!progress || progress == progress_) return;
  progress_ = progress;
  JsonWriter data;
  data.open_object().field("state", name_of(progress->state)).field("percent", progress->percent);
  data.close_object();
  say_(state_change("progress", data.finish()));
}

void OutputWatch::finish() {
  if (!is_idle()) lines_.finish([this](std::string_view line) { feed_line(line); });
  stated_end_ = agent_.finish();
}

}  // namespace watchdog::monitor
