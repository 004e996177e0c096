// opencode: `opencode export` writes one object with `info` and `messages`; each message has an
// `info` and its `parts`. The API returns the list of messages alone. `opencode run --format json`
// writes one part per line. Files of its storage hold one message or one part each.
// Sources: sst/opencode packages/opencode/src/session/message-v2.ts and
// packages/opencode/src/cli/cmd/{export,run}.ts.
#include <algorithm>

#include "ingest/opencode_part.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

bool is_code_message(const json& value) {
  return member(value, "info").is_object() && member(value, "parts").is_array() &&
         !text_in(member(value, "info"), "role").empty();
}

/// A line of `opencode run --format json`.
bool is_code_line(const json& value) {
  return !text_in(value, "sessionID").empty() && !text_in(value, "type").empty() &&
         (member(value, "part").is_object() || member(value, "error").is_object());
}

class OpencodeReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    if (is_code_line(value)) {
      read_line(value, steps);
      return {};
    }
    const auto& info = member(value, "info");
    const auto& messages = value.is_array() ? value : member(value, "messages");
    if (!messages.is_array())
      return Error{ErrorCode::malformed, "an export has messages with parts"};
    SessionSpec spec;
    spec.agent = "opencode";
    spec.title = short_name(text_in(info, "title"));
    spec.labels["cwd"] = text_in(info, "directory");
    auto id = text_in(info, "id");
    if (id.empty() && !messages.empty())
      id = text_in(member(messages.front(), "info"), "sessionID");
    session_ = steps.session(id, std::move(spec));
    used_ = {};
    for (const auto& message : messages) read_message(message, steps);
    return {};
  }
  void finish(StepList& steps) override { steps.sort(); }

 private:
  void read_message(const json& message, StepList& steps) {
    const auto& info = member(message, "info");
    const auto& times = member(info, "time");
    const auto created = moment_in(times, "created");
    const auto& parts = member(message, "parts");
    if (!parts.is_array()) return;
    if (text_in(info, "role") == "user") {
      std::string text;
      for (const auto& part : parts) {
        if (text_in(part, "type") == "compaction") compact(created, steps);
        if (!is_opencode_prompt(part)) continue;
        text += (text.empty() ? "" : "\n") + text_in(part, "text");
      }
      if (!text.empty()) steps.prompt(session_, content_text(text), created);
      return;
    }
    auto newest = created;
    is_answer_ = false;
    for (const auto& part : parts) newest = read_part(part, newest, steps);
    const auto completed = moment_in(times, "completed");
    const auto at = completed ? std::max(completed, newest) : newest;
    read_use(info, at, steps);
    if (read_error(member(info, "error"), at, steps)) return;
    const auto finish = text_in(info, "finish");
    if (finish.empty() ? is_answer_ && completed.has_value() : ends_opencode_turn(finish))
      steps.rest(session_, {}, {}, at);
  }

  /// Returns the time up to which the message was read.
  std::optional<WallTime> read_part(const json& part, std::optional<WallTime> at, StepList& steps) {
    const auto type = text_in(part, "type");
    if (type == "text") {
      const auto begin = moment_in(member(part, "time"), "start");
      if (begin) at = std::max(at, begin);
      is_answer_ = true;
      steps.message(session_, "assistant", content_text(text_in(part, "text")), at);
      const auto end = moment_in(member(part, "time"), "end");
      return end ? std::max(at, end) : at;
    }
    if (type == "compaction") compact(at, steps);
    if (type != "tool") return at;
    is_answer_ = false;
    const auto& state = member(part, "state");
    const auto begin = moment_in(member(state, "time"), "start");
    if (begin) at = std::max(at, begin);
    const auto tool = text_in(part, "tool");
    const auto id = text_in(part, "callID");
    steps.call(session_, tool, id, content_text(member(state, "input")), at);
    if (!is_opencode_call_over(state)) return at;
    const auto end = moment_in(member(state, "time"), "end");
    if (end) at = std::max(at, end);
    steps.result(session_, tool, id, is_opencode_failure(state), opencode_result(state), at);
    return at;
  }

  void read_use(const json& info, std::optional<WallTime> at, StepList& steps) {
    if (!member(info, "tokens").is_object()) return;
    ++used_.steps;
    used_.tokens = std::min(used_.tokens + opencode_tokens(info), budget_max);
    used_.cost = std::min(used_.cost + opencode_cost(info), 1e9);
    steps.use(session_, used_, at);
  }

  /// Returns whether the turn failed.
  bool read_error(const json& error, std::optional<WallTime> at, StepList& steps) {
    if (!error.is_object()) return false;
    const auto name = text_in(error, "name");
    if (name == "MessageAbortedError") {
      steps.rest(session_, idle_reports::interrupted, {}, at);
      return true;
    }
    const auto text = text_in(member(error, "data"), "message");
    steps.rest(session_, idle_reports::failed,
               content_text(name + (text.empty() ? "" : ": " + text)), at);
    return true;
  }

  void read_line(const json& line, StepList& steps) {
    SessionSpec spec;
    spec.agent = "opencode";
    session_ = steps.session(text_in(line, "sessionID"), std::move(spec));
    const auto at = moment_in(line, "timestamp");
    if (read_error(member(line, "error"), at, steps)) return;
    const auto& part = member(line, "part");
    if (text_in(part, "type") != "step-finish") {
      (void)read_part(part, at, steps);
      return;
    }
    read_use(part, at, steps);
    if (ends_opencode_turn(text_in(part, "reason"))) steps.rest(session_, {}, {}, at);
  }

  void compact(std::optional<WallTime> at, StepList& steps) const {
    Report report;
    report.kind = ReportKind::compaction;
    steps.say(session_, std::move(report), at);
  }

  std::shared_ptr<const RecordedSession> session_;
  BudgetFigures used_{};
  bool is_answer_ = false;  ///< The newest part of the message is a text.
};

}  // namespace

bool is_opencode(const json& value) {
  if (is_code_line(value)) return true;
  const auto& messages = value.is_array() ? value : member(value, "messages");
  if (!messages.is_array()) return false;
  if (!messages.empty()) return is_code_message(messages.front());
  return text_in(member(value, "info"), "id").starts_with("ses_");
}

std::unique_ptr<ValueReader> opencode_reader() {
  return std::make_unique<OpencodeReader>();
}

}  // namespace watchdog::monitor
