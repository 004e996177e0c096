// The log of Codex' terminal program (CODEX_TUI_RECORD_SESSION): what it sent to the agent and got
// from it, one object per line. Only the agent's events are read; keys and screens have no meaning.
// Source: openai/codex codex-rs/tui/src/session_log.rs and codex-rs/protocol/src/protocol.rs.
#include <algorithm>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::string_view log_directions[] = {"meta", "to_tui", "from_tui"};

/// Beginnings and ends of calls: the events' names up to `_begin` and `_end`.
constexpr std::pair<std::string_view, std::string_view> log_calls[] = {
    {"exec_command", "shell"},
    {"patch_apply", "apply_patch"},
    {"mcp_tool_call", ""},
    {"web_search", "web_search"}};

class CodexLogReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    at_ = moment_in(value, "ts");
    const auto& payload = member(value, "payload");
    if (text_in(value, "kind") == "op") read_op(payload, steps);
    const auto& event = member(payload, "msg");
    if (event.is_object()) read_event(event, text_in(event, "type"), steps);
    return {};
  }
  void finish(StepList& /*steps*/) override {}

 private:
  void begin(const std::string& id, const json& event, StepList& steps) {
    SessionSpec spec;
    spec.agent = "codex";
    spec.labels["model"] = text_in(event, "model");
    spec.labels["cwd"] = text_in(event, "cwd");
    session_ = steps.session(id, std::move(spec));
    tools_.clear();
  }

  /// A message of a person.
  void read_op(const json& op, StepList& steps) {
    const auto type = text_in(op, "type");
    if (type != "user_input" && type != "user_turn") return;
    const auto text = content_text(member(op, "items"));
    if (!session_) begin({}, json(), steps);
    if (!text.empty()) steps.prompt(session_, text, at_);
  }

  void read_event(const json& event, const std::string& type, StepList& steps) {
    if (type == "session_configured") return begin(text_in(event, "session_id"), event, steps);
    if (!session_) begin({}, json(), steps);
    if (type == "agent_message")
      return steps.message(session_, "assistant", content_text(text_in(event, "message")), at_);
    if (type == "task_complete") return steps.rest(session_, {}, {}, at_);
    if (type == "turn_aborted") return steps.rest(session_, idle_reports::interrupted, {}, at_);
    if (type == "error")
      return steps.rest(session_, idle_reports::failed, content_text(text_in(event, "message")),
                        at_);
    if (type == "token_count") return count(event, steps);
    for (const auto& [word, tool] : log_calls) {
      if (type == std::string(word) + "_begin") return call(event, std::string(tool), steps);
      if (type == std::string(word) + "_end") return result(event, steps);
    }
  }

  void call(const json& event, std::string tool, StepList& steps) {
    const auto id = text_in(event, "call_id");
    const auto& invocation = member(event, "invocation");
    if (tool.empty()) tool = text_in(invocation, "tool");
    const json* arguments = &event;
    for (const auto* name : {"command", "changes", "query"})
      if (event.contains(name)) arguments = &event[name];
    if (invocation.is_object()) arguments = &member(invocation, "arguments");
    tools_.insert_or_assign(id, tool);
    steps.call(session_, std::move(tool), id, content_text(*arguments), at_);
  }

  void result(const json& event, StepList& steps) {
    const auto id = text_in(event, "call_id");
    const auto tool = tools_.extract(id);
    const auto& success = member(event, "success");
    const auto& returned = member(event, "result");
    const bool failed = number_in(event, "exit_code") != 0 ||
                        (success.is_boolean() && !success.get<bool>()) ||
                        (returned.is_object() && returned.contains("Err"));
    std::string text;
    for (const auto* name : {"aggregated_output", "stdout", "stderr"})
      if (text.empty()) text = content_text(member(event, name));
    if (text.empty()) text = content_text(returned);
    steps.result(session_, tool ? tool.mapped() : std::string("tool"), id, failed, std::move(text),
                 at_);
  }

  void count(const json& event, StepList& steps) {
    const auto& info = member(event, "info");
    const auto& total = info.is_object() ? member(info, "total_token_usage") : event;
    BudgetFigures figures;
    figures.tokens =
        tokens_in(total, "input_tokens") -
        std::min(tokens_in(total, "cached_input_tokens"), tokens_in(total, "input_tokens")) +
        tokens_in(total, "output_tokens");
    if (figures.tokens > 0) steps.use(session_, figures, at_);
  }

  std::shared_ptr<const RecordedSession> session_;
  std::optional<WallTime> at_;
  std::map<std::string, std::string> tools_;  ///< By the ids of their calls.
};

}  // namespace

bool is_codex_log(const json& value) {
  return std::ranges::find(log_directions, text_in(value, "dir")) != std::end(log_directions) &&
         !text_in(value, "kind").empty() && !text_in(value, "ts").empty();
}

std::unique_ptr<ValueReader> codex_log_reader() {
  return std::make_unique<CodexLogReader>();
}

}  // namespace watchdog::monitor
