#include "ingest/agent_stream.h"

#include <utility>

#include "codec/fields.h"
#include "ingest/recording_steps.h"
#include "ingest/transcript.h"
#include "ingest/transcript_state.h"
#include "watchdog/time.h"

namespace watchdog::monitor {
namespace {

/// A stream begins with the facts of its session. A transcript that a command prints does not. The
/// text is searched first, because other commands print long lines of JSON.
bool begins_claude_code(std::string_view line) {
  if (!line.starts_with('{') || line.find("\"init\"") == line.npos) return false;
  const auto value = parse_json(line);
  return value && is_claude_code(*value) && text_in(*value, "type") == "system" &&
         text_in(*value, "subtype") == "init" && !value->contains("sessionId");
}

/// Reports that others make of the same session: the wrapper begins and ends it.
bool is_of_wrapper(const Report& report) {
  return report.kind == ReportKind::start || report.kind == ReportKind::end;
}

}  // namespace

struct AgentStream::State {
  Transcript transcript{TranscriptAgent::claude_code};
  int lines_before = 0;
  bool has_begun = false;
};

AgentStream::AgentStream() : state_(std::make_unique<State>()) {}
AgentStream::~AgentStream() = default;

bool AgentStream::is_over() const noexcept {
  return !state_->has_begun && state_->lines_before >= lines_before_max;
}

bool AgentStream::has_begun() const noexcept {
  return state_->has_begun;
}

std::vector<Report> AgentStream::read(std::string_view line) {
  std::vector<Report> reports;
  if (is_over() || line.size() >= line_bytes_max) return reports;
  if (!state_->has_begun) state_->has_begun = begins_claude_code(line);
  if (!state_->has_begun) {
    ++state_->lines_before;
    return reports;
  }
  auto batches = state_->transcript.read(line, system_clock().wall());
  if (!batches) return reports;  // a word of another program between the events
  for (auto& batch : *batches) {
    if (!batch.spec.parent.empty()) continue;
    for (auto& report : batch.reports)
      if (!is_of_wrapper(report)) reports.push_back(std::move(report));
  }
  return reports;
}

std::optional<Outcome> AgentStream::finish() {
  std::optional<Outcome> outcome;
  for (auto& batch : state_->transcript.pause()) {
    if (!batch.spec.parent.empty()) continue;
    for (auto& report : batch.reports)
      if (auto* end = std::get_if<Outcome>(&report.detail)) outcome = std::move(*end);
  }
  return outcome;
}

}  // namespace watchdog::monitor
