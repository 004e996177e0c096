// Gemini CLI: a chat file is one object with `messages`, or, in newer versions, lines: facts of the
// session, messages (written again whenever they change), `$set` and `$rewindTo`.
// `--output-format stream-json` writes one event per line instead. Programs made of it do the same.
// Sources: google-gemini/gemini-cli packages/core/src/services/chatRecordingService.ts and
// packages/core/src/output/types.ts.
#include <algorithm>

#include "ingest/gemini_message.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::string_view gemini_roles[] = {"user", "gemini", "qwen",   "assistant",
                                             "info", "error",  "warning"};
constexpr std::string_view gemini_events[] = {"init",        "message", "tool_use",
                                              "tool_result", "error",   "result"};

bool is_gemini_message(const json& value) {
  return !text_in(value, "id").empty() && value.contains("content") &&
         std::ranges::find(gemini_roles, text_in(value, "type")) != std::end(gemini_roles);
}

/// The first line of a chat file, or the whole of one.
bool is_gemini_chat(const json& value) {
  return !text_in(value, "sessionId").empty() && text_in(value, "type").empty() &&
         (value.contains("projectHash") || value.contains("startTime"));
}

class GeminiReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    if (!value.is_object()) return Error{ErrorCode::malformed, "a chat must be an object"};
    if (is_gemini_chat(value)) id_ = text_in(value, "sessionId");
    const auto& messages = member(value, "messages");
    for (const auto* list : {&messages, &member(member(value, "$set"), "messages")}) {
      if (!list->is_array()) continue;
      for (const auto& message : *list)
        if (auto kept = keep(message); !kept) return kept;
    }
    if (const auto id = text_in(value, "$rewindTo"); !id.empty()) {
      if (const auto found = places_.find(id); found != places_.end()) {
        messages_.resize(found->second);
        std::erase_if(places_, [&](const auto& place) { return place.second >= messages_.size(); });
      }
    } else if (is_gemini_message(value)) {
      return keep(value);
    } else if (std::ranges::find(gemini_events, text_in(value, "type")) !=
               std::end(gemini_events)) {
      read_event(value, steps);
    }
    return {};
  }

  void finish(StepList& steps) override {
    end_text(steps);
    if (messages_.empty()) return;
    begin(id_, {}, steps);
    for (const auto& message : messages_) read_message(message, steps);
    rest(steps);
    steps.sort();
  }

 private:
  /// A message may be there in an older form.
  Result<void> keep(const json& message) {
    const auto found = places_.find(text_in(message, "id"));
    if (found != places_.end()) {
      messages_[found->second] = message;
      return {};
    }
    if (messages_.size() >= StepList::steps_max / 8) return StepList::exceeded();
    if (auto id = text_in(message, "id"); !id.empty())
      places_.emplace(std::move(id), messages_.size());
    messages_.push_back(message);
    return {};
  }

  void begin(const std::string& id, const std::string& model, StepList& steps) {
    SessionSpec spec;
    spec.agent = "gemini-cli";
    spec.labels["model"] = model;
    session_ = steps.session(id, std::move(spec));
  }

  /// The answer before was the last one of its turn.
  void rest(StepList& steps) {
    if (std::exchange(may_rest_, false)) steps.rest(session_, {}, {}, at_);
  }

  void read_message(const json& message, StepList& steps) {
    const auto type = text_in(message, "type");
    auto text = content_text(member(message, "content"));
    if (type == "user") {
      rest(steps);
      at_ = moment_in(message, "timestamp");
      if (!text.empty() && !text.starts_with('/')) steps.prompt(session_, std::move(text), at_);
      return;
    }
    const auto at = moment_in(message, "timestamp");
    if (type == "info" || type == "warning") {
      if (is_gemini_interruption(type, text)) {
        may_rest_ = false;
        steps.rest(session_, idle_reports::interrupted, {}, at_ = at);
      }
      return;
    }
    at_ = at;
    if (type == "error") {
      may_rest_ = false;
      return steps.rest(session_, idle_reports::failed, std::move(text), at_);
    }
    const auto& calls = member(message, "toolCalls");
    may_rest_ = (!calls.is_array() || calls.empty()) && !text.empty();
    steps.message(session_, "assistant", std::move(text), at_);
    if (calls.is_array())
      for (const auto& call : calls) read_call(call, steps);
    if (member(message, "tokens").is_object()) count(gemini_tokens(message), steps);
  }

  void read_call(const json& call, StepList& steps) {
    const auto name = text_in(call, "name");
    const auto id = text_in(call, "id");
    const auto end = moment_in(call, "timestamp");
    steps.call(session_, name, id, content_text(member(call, "args")), at_);
    if (!is_gemini_call_over(call)) return;
    if (end) at_ = std::max(at_, end);
    steps.result(session_, name, id, text_in(call, "status") != "success", gemini_result(call),
                 at_);
  }

  void count(std::int64_t tokens, StepList& steps) {
    ++used_.steps;
    used_.tokens = std::min(used_.tokens + tokens, budget_max);
    steps.use(session_, used_, at_);
  }

  /// A line of the output as a stream. Pieces of one answer are joined.
  void read_event(const json& event, StepList& steps) {
    const auto type = text_in(event, "type");
    const auto at = moment_in(event, "timestamp");
    if (!session_) begin(text_in(event, "session_id"), text_in(event, "model"), steps);
    if (type == "message" && text_in(event, "role") != "user") {
      answer_ += text_in(event, "content");
      answer_ = content_text(answer_);
      answer_at_ = at;
      return;
    }
    end_text(steps);
    at_ = at;
    const auto id = text_in(event, "tool_id");
    const auto& error = member(event, "error");
    if (type == "message") {
      steps.prompt(session_, content_text(member(event, "content")), at_);
    } else if (type == "tool_use") {
      tools_.insert_or_assign(id, text_in(event, "tool_name"));
      steps.call(session_, text_in(event, "tool_name"), id,
                 content_text(member(event, "parameters")), at_);
    } else if (type == "tool_result") {
      auto text = content_text(member(event, "output"));
      if (text.empty()) text = text_in(error, "message");
      steps.result(session_, tools_[id], id, text_in(event, "status") != "success", std::move(text),
                   at_);
      tools_.erase(id);
    } else if (type == "error") {
      steps.message(session_, "error", text_in(event, "message"), at_);
    } else if (type == "result") {
      count_all(member(event, "stats"), steps);
      Outcome outcome{.kind = OutcomeKind::completed, .reason = "task_complete"};
      if (text_in(event, "status") != "success") {
        outcome = {.kind = OutcomeKind::failed, .reason = "error"};
        outcome.error = content_text(member(error, "message"));
      }
      steps.end(session_, std::move(outcome), at_);
    }
  }

  void count_all(const json& stats, StepList& steps) {
    used_.tokens = tokens_in(stats, "total_tokens");
    if (used_.tokens > 0) steps.use(session_, used_, at_);
  }

  void end_text(StepList& steps) {
    if (answer_.empty()) return;
    ++used_.steps;
    steps.message(session_, "assistant", std::exchange(answer_, {}), answer_at_);
  }

  std::shared_ptr<const RecordedSession> session_;
  std::string id_;
  std::vector<json> messages_;
  std::map<std::string, std::size_t> places_;  ///< Of the messages, by their ids.
  std::optional<WallTime> at_;
  std::string answer_;  ///< Pieces of a text.
  std::optional<WallTime> answer_at_;
  std::map<std::string, std::string> tools_;  ///< By the ids of their calls.
  BudgetFigures used_{};
  bool may_rest_ = false;  ///< The newest message is an answer without calls.
};

}  // namespace

bool is_gemini_cli(const json& value) {
  if (is_gemini_chat(value)) return true;
  return text_in(value, "type") == "init" && !text_in(value, "session_id").empty() &&
         !text_in(value, "model").empty() && !text_in(value, "timestamp").empty();
}

std::unique_ptr<ValueReader> gemini_cli_reader() {
  return std::make_unique<GeminiReader>();
}

}  // namespace watchdog::monitor
