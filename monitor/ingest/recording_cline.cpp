// Cline, Roo Code and Kilo Code: `ui_messages.json` is a list of what the page of the extension
// shows. A call is one message that has its arguments, and often its result. The text of a message
// may be JSON. `api_conversation_history.json` has chat messages, whose calls older versions write
// as tags of XML. Sources: cline/cline src/shared/ExtensionMessage.ts and
// RooCodeInc/Roo-Code packages/types/src/message.ts.
#include <algorithm>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

bool is_ui_message(const json& value) {
  const auto type = text_in(value, "type");
  return (type == "say" || type == "ask") && !text_in(value, type.c_str()).empty() &&
         member(value, "ts").is_number();
}

enum class ClineMeaning : std::uint8_t {
  text,     ///< of the agent; the first one is the task
  prompt,   ///< of a person
  request,  ///< to the model: its tokens
  tool,     ///< a call with its result
  command,  ///< a call of the shell
  output,   ///< of the open call
  failed,   ///< the call before failed
  done,     ///< the answer is complete
  question,
  trouble,  ///< a request to the model failed
  compact
};

struct ClineRow {
  std::string_view word;
  ClineMeaning meaning;
};

constexpr ClineRow cline_rows[] = {
    {"task", ClineMeaning::text},
    {"text", ClineMeaning::text},
    {"user_feedback", ClineMeaning::prompt},
    {"user_feedback_diff", ClineMeaning::prompt},
    {"api_req_started", ClineMeaning::request},
    {"tool", ClineMeaning::tool},
    {"command", ClineMeaning::command},
    {"use_mcp_server", ClineMeaning::command},
    {"browser_action", ClineMeaning::command},
    {"browser_action_launch", ClineMeaning::command},
    {"command_output", ClineMeaning::output},
    {"mcp_server_response", ClineMeaning::output},
    {"browser_action_result", ClineMeaning::output},
    {"error", ClineMeaning::failed},
    {"diff_error", ClineMeaning::failed},
    {"rooignore_error", ClineMeaning::failed},
    {"clineignore_error", ClineMeaning::failed},
    {"completion_result", ClineMeaning::done},
    {"followup", ClineMeaning::question},
    {"plan_mode_respond", ClineMeaning::question},
    {"api_req_failed", ClineMeaning::trouble},
    {"condense_context", ClineMeaning::compact},
};

class ClineReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    if (!value.is_array()) return Error{ErrorCode::malformed, "the messages must be a list"};
    SessionSpec spec;
    spec.agent = "cline";
    session_ = steps.session({}, std::move(spec));
    for (const auto& message : value) read_message(message, steps);
    close(false, {}, steps);
    return {};
  }
  void finish(StepList& /*steps*/) override {}

 private:
  void read_message(const json& message, StepList& steps) {
    if (!is_ui_message(message) || flag_in(message, "partial")) return;
    const bool is_said = text_in(message, "type") == "say";
    const auto word = text_in(message, is_said ? "say" : "ask");
    const auto* row = std::ranges::find(cline_rows, word, &ClineRow::word);
    if (row == std::end(cline_rows)) return;
    at_ = moment_in(message, "ts");
    auto text = content_text(text_in(message, "text"));
    const auto meaning = row->meaning;
    if (meaning != ClineMeaning::output && meaning != ClineMeaning::failed) close(false, {}, steps);
    switch (meaning) {
      case ClineMeaning::text:
        if (std::exchange(has_task_, true))
          return steps.message(session_, "assistant", std::move(text), at_);
        return steps.prompt(session_, std::move(text), at_);
      case ClineMeaning::prompt:
        return steps.prompt(session_, std::move(text), at_);
      case ClineMeaning::request:
        return read_request(value_in_text(json(text)), steps);
      case ClineMeaning::tool:
        return read_tool(value_in_text(json(text)), text, steps);
      case ClineMeaning::command:
        return open(word.starts_with("browser") ? "browser_action" : word, text, {}, steps);
      case ClineMeaning::output:
        output_ += (output_.empty() ? "" : "\n") + text;
        output_ = content_text(output_);
        return;
      case ClineMeaning::failed:
        if (!open_.empty()) return close(true, std::move(text), steps);
        return steps.message(session_, "error", std::move(text), at_);
      case ClineMeaning::done:
        if (!is_said && text.empty()) return;  // asks for feedback
        steps.message(session_, "assistant", std::move(text), at_);
        return steps.rest(session_, {}, {}, at_);
      case ClineMeaning::question: {
        steps.message(session_, "assistant", std::move(text), at_);
        Report report;
        report.kind = ReportKind::wait;
        report.name = wait_reports::input;
        return steps.say(session_, std::move(report), at_);
      }
      case ClineMeaning::trouble:
        return steps.rest(session_, idle_reports::failed, std::move(text), at_);
      case ClineMeaning::compact: {
        Report report;
        report.kind = ReportKind::compaction;
        return steps.say(session_, std::move(report), at_);
      }
    }
  }

  void read_request(const json& request, StepList& steps) {
    if (!request.is_object()) return;
    ++used_.steps;
    used_.tokens =
        std::min(used_.tokens + tokens_in(request, "tokensIn") + tokens_in(request, "tokensOut"),
                 budget_max);
    const auto& cost = member(request, "cost");
    if (cost.is_number() && cost.get<double>() > 0)
      used_.cost = std::min(used_.cost + cost.get<double>(), 1e9);
    steps.use(session_, used_, at_);
    if (const auto why = text_in(request, "cancelReason"); why == "user_cancelled")
      steps.rest(session_, idle_reports::interrupted, {}, at_);
  }

  void read_tool(const json& call, const std::string& text, StepList& steps) {
    auto arguments = call;
    std::string result;
    if (arguments.is_object()) {
      // The content is the result of a tool that reads, and an argument of a tool that writes.
      const auto tool = text_in(call, "tool");
      const bool writes = tool == "editedExistingFile" || tool == "newFileCreated" ||
                          tool == "appliedDiff" || tool == "insertContent";
      if (!writes) result = content_text(member(call, "content"));
      if (!writes) arguments.erase("content");
    }
    open(text_in(call, "tool"), arguments.is_object() ? content_text(arguments) : text,
         std::move(result), steps);
  }

  void open(std::string tool, std::string arguments, std::string result, StepList& steps) {
    if (tool.empty()) tool = "tool";
    open_ = "call-" + std::to_string(++calls_);
    tool_ = tool;
    output_ = std::move(result);
    steps.call(session_, std::move(tool), open_, std::move(arguments), at_);
  }

  void close(bool failed, std::string text, StepList& steps) {
    if (open_.empty()) return;
    if (text.empty()) text = std::exchange(output_, {});
    steps.result(session_, tool_, std::exchange(open_, {}), failed, std::move(text), at_);
    output_.clear();
  }

  std::shared_ptr<const RecordedSession> session_;
  std::optional<WallTime> at_;
  std::string open_;  ///< The id of the open call; empty: none is open.
  std::string tool_;
  std::string output_;  ///< Of the open call.
  std::int64_t calls_ = 0;
  BudgetFigures used_{};
  bool has_task_ = false;
};

}  // namespace

bool is_cline(const json& value) {
  return value.is_array() && !value.empty() && is_ui_message(value.front());
}

std::unique_ptr<ValueReader> cline_reader() {
  return std::make_unique<ClineReader>();
}

}  // namespace watchdog::monitor
