// Chat messages as they are sent to a model's API, which most home-made agents save: a list, an
// object with the list as `messages` (or `conversations`: ShareGPT), several such objects, or one
// message per line. Calls have the form of OpenAI, of Anthropic, of the AI SDK, or are JSON within
// `<tool_call>`. Messages rarely have times. Sources: the references of both APIs,
// https://ai-sdk.dev/docs/reference/ai-sdk-core/model-message and the data sets of ShareGPT.
#include <algorithm>
#include <deque>

#include "ingest/recording_steps.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

enum class ChatRole : std::uint8_t { system, person, agent, tool, call };

constexpr std::pair<std::string_view, ChatRole> chat_roles[] = {
    {"system", ChatRole::system},    {"developer", ChatRole::system},
    {"user", ChatRole::person},      {"human", ChatRole::person},
    {"assistant", ChatRole::agent},  {"gpt", ChatRole::agent},
    {"tool", ChatRole::tool},        {"function", ChatRole::tool},
    {"observation", ChatRole::tool}, {"function_call", ChatRole::call}};

std::optional<ChatRole> chat_role(const json& message) {
  auto word = text_in(message, "role");
  if (word.empty()) word = text_in(message, "from");
  const auto* row =
      std::ranges::find(chat_roles, word, &std::pair<std::string_view, ChatRole>::first);
  return row == std::end(chat_roles) ? std::nullopt : std::optional(row->second);
}

/// Foreign events may have a role and a content, too. A message has a known role, and no word that
/// says what else it is.
bool is_chat_message(const json& value) {
  if (!value.is_object() || !chat_role(value) || value.contains("kind")) return false;
  if (const auto type = text_in(value, "type"); !type.empty() && type != "message") return false;
  const auto& content = member(value, value.contains("role") ? "content" : "value");
  const bool has_calls = value.contains("tool_calls") || value.contains("function_call");
  return content.is_string() || content.is_array() ||
         (has_calls && (content.is_null() || content.is_string()));
}

bool is_chat_list(const json& list) {
  constexpr std::size_t looked_at = 20;
  if (!list.is_array() || list.empty()) return false;
  for (std::size_t at = 0; at < list.size() && at < looked_at; ++at)
    if (!is_chat_message(list[at])) return false;
  return true;
}

/// The messages of an object; null: it has none.
const json* chat_list(const json& value) {
  for (const auto* name : {"messages", "conversations", "conversation"})
    if (is_chat_list(member(value, name))) return &member(value, name);
  return nullptr;
}

class ChatReader final : public ValueReader {
 public:
  Result<void> read(const json& value, std::string_view /*text*/, StepList& steps) override {
    if (is_chat_message(value)) {
      if (!session_) begin(json(), steps);
      read_message(value, steps);
      return {};
    }
    if (is_chat_list(value)) {
      begin(json(), steps);
      for (const auto& message : value) read_message(message, steps);
      return {};
    }
    if (const auto* list = chat_list(value)) {
      read_conversation(value, *list, steps);
      return {};
    }
    bool has_one = false;
    if (value.is_array()) {
      for (const auto& one : value) {
        const auto* list = chat_list(one);
        if (list == nullptr) continue;
        has_one = true;
        read_conversation(one, *list, steps);
        if (steps.is_full()) return StepList::exceeded();
      }
    }
    if (has_one) return {};
    return Error{ErrorCode::malformed, "a conversation must be a list of messages with roles"};
  }
  void finish(StepList& steps) override { rest(steps); }

 private:
  void begin(const json& about, StepList& steps) {
    rest(steps);
    std::string id;
    for (const auto* name : {"session_id", "sessionId", "conversation_id", "id", "instance_id"})
      if (id.empty()) id = text_in(about, name);
    // The second conversation of a file gets the file's name with its number.
    if (id.empty() && ++unnamed_ > 1) id = steps.name() + "-" + std::to_string(unnamed_);
    SessionSpec spec;
    spec.labels["model"] = text_in(about, "model");
    session_ = steps.session(id, std::move(spec));
    open_.clear();
    at_.reset();
    calls_ = 0;
  }

  void read_conversation(const json& about, const json& list, StepList& steps) {
    begin(about, steps);
    for (const auto& message : list) read_message(message, steps);
    rest(steps);
  }

  /// The answer before was the last one of its turn.
  void rest(StepList& steps) {
    if (std::exchange(may_rest_, false)) steps.rest(session_, {}, {}, at_);
  }

  void read_message(const json& message, StepList& steps) {
    const auto role = chat_role(message);
    if (!role || *role == ChatRole::system) return;
    const auto& content = member(message, message.contains("role") ? "content" : "value");
    // A person's message may only hold results.
    const auto text = content_text(content);
    if (*role == ChatRole::person && !text.empty()) rest(steps);
    for (const auto* name : {"timestamp", "created_at", "createdAt", "ts", "time"})
      for (const auto* about :
           {&message, &member(message, "metadata"), &member(message, "_metadata")})
        if (const auto at = second_in(*about, name)) at_ = at;
    switch (*role) {
      case ChatRole::person:
        read_blocks(content, steps);
        if (!text.empty()) steps.prompt(session_, text, at_);
        return;
      case ChatRole::agent:
        return read_answer(message, content, text, steps);
      case ChatRole::call:
        return read_call_text(content_text(content), steps);
      case ChatRole::tool:
        if (read_blocks(content, steps)) return;
        return result(text_in(message, "tool_call_id"), text_in(message, "name"),
                      flag_in(message, "is_error"), text, steps);
      case ChatRole::system:
        return;
    }
  }

  void read_answer(const json& message, const json& content, const std::string& text,
                   StepList& steps) {
    const auto before = calls_;
    steps.message(session_, "assistant", text, at_);
    const auto& calls = member(message, "tool_calls");
    if (calls.is_array()) {
      for (const auto& one : calls) {
        const auto& function = member(one, "function").is_object() ? member(one, "function") : one;
        const auto& arguments =
            member(function, function.contains("arguments") ? "arguments" : "args");
        call(text_in(function, "name"), text_in(one, "id"), content_text(arguments), steps);
      }
    }
    if (const auto& function = member(message, "function_call"); function.is_object())
      call(text_in(function, "name"), {}, content_text(member(function, "arguments")), steps);
    read_blocks(content, steps);
    read_marked_calls(text, steps);
    may_rest_ = calls_ == before;
  }

  /// Calls and results among the blocks of a content. Returns whether one was there.
  bool read_blocks(const json& content, StepList& steps) {
    if (!content.is_array()) return false;
    bool found = false;
    for (const auto& block : content) {
      const auto type = text_in(block, "type");
      const bool is_call = type == "tool_use" || type == "tool-call" || type == "toolCall";
      const bool is_result = type == "tool_result" || type == "tool-result";
      found = found || is_call || is_result;
      std::string id;
      for (const auto* name : {"tool_use_id", "toolCallId", "id"})
        if (id.empty()) id = text_in(block, name);
      auto tool = text_in(block, "name");
      if (tool.empty()) tool = text_in(block, "toolName");
      if (is_call) {
        const auto& input = member(block, block.contains("input")  ? "input"
                                          : block.contains("args") ? "args"
                                                                   : "arguments");
        call(std::move(tool), id, content_text(input), steps);
      } else if (is_result) {
        auto text = content_text(member(block, "content"));
        if (text.empty()) text = content_text(member(block, "output"));
        if (text.empty()) text = content_text(member(block, "result"));
        result(id, tool, flag_in(block, "is_error") || flag_in(block, "isError"), std::move(text),
               steps);
      }
    }
    return found;
  }

  /// `<tool_call>{"name": …, "arguments": …}</tool_call>`, several times.
  void read_marked_calls(std::string_view text, StepList& steps) {
    constexpr std::string_view begin = "<tool_call>";
    constexpr std::string_view end = "</tool_call>";
    for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
      at += begin.size();
      const auto stop = text.find(end, at);
      if (stop == text.npos) return;
      read_call_text(std::string(text.substr(at, stop - at)), steps);
    }
  }

  void read_call_text(std::string text, StepList& steps) {
    text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    const auto value = value_in_text(json(text));
    const auto name = text_in(value, "name");
    if (name.empty()) return;
    call(name, text_in(value, "id"), content_text(member(value, "arguments")), steps);
    may_rest_ = false;
  }

  void call(std::string tool, std::string id, std::string arguments, StepList& steps) {
    constexpr std::size_t open_max = 256;
    ++calls_;
    if (id.empty()) id = "call-" + std::to_string(calls_);
    if (tool.empty()) tool = "tool";
    steps.call(session_, tool, id, std::move(arguments), at_);
    if (open_.size() == open_max) open_.pop_front();
    open_.push_back({std::move(tool), std::move(id)});
  }

  /// Without an id it is the result of the oldest open call.
  void result(const std::string& id, const std::string& tool, bool failed, std::string text,
              StepList& steps) {
    auto found = std::ranges::find(open_, id, &OpenCall::id);
    if (found == open_.end() && id.empty()) found = open_.begin();
    if (found == open_.end())
      return id.empty() ? steps.message(session_, "environment", std::move(text), at_)
                        : steps.result(session_, tool, id, failed, std::move(text), at_);
    steps.result(session_, found->tool, found->id, failed, std::move(text), at_);
    open_.erase(found);
  }

  struct OpenCall {
    std::string tool;
    std::string id;
  };

  std::shared_ptr<const RecordedSession> session_;
  std::deque<OpenCall> open_;
  std::optional<WallTime> at_;
  std::int64_t calls_ = 0;
  int unnamed_ = 0;
  bool may_rest_ = false;  ///< The newest message is an answer without calls.
};

}  // namespace

bool is_chat(const json& value) {
  if (is_chat_message(value) || is_chat_list(value) || chat_list(value) != nullptr) return true;
  return value.is_array() && !value.empty() && chat_list(value.front()) != nullptr;
}

std::unique_ptr<ValueReader> chat_reader() {
  return std::make_unique<ChatReader>();
}

}  // namespace watchdog::monitor
