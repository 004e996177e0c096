// Reads answers of all usual model APIs. Bytes are events, lines or one document, by the content
// type or by how they begin. Each JSON value is read by its members, whatever API it belongs to.
// Texts, calls and tokens end up in the same members of `ObservedAnswer`.
#include "llm/answer_stream.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "codec/fields.h"
#include "llm/call_assembler.h"
#include "llm/error_body.h"
#include "llm/event_stream.h"
#include "llm/members.h"
#include "privacy/content.h"
#include "text/utf8.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// One event, one line or one whole answer. The Responses API repeats instructions and tools in
/// its events.
constexpr std::size_t answer_event_bytes_max = 4U << 20U;
constexpr std::size_t answer_values_max = 200'000;
constexpr std::size_t error_bytes_max = 16'384;
constexpr std::size_t error_chars_max = 2'000;
constexpr std::size_t arguments_bytes_max = 1U << 20U;
constexpr std::size_t all_calls_bytes_max = 8U << 20U;

bool flag_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

}  // namespace

struct AnswerStream::State {
  enum class Form : std::uint8_t { unknown, events, lines, document, error, over };

  Form form = Form::unknown;
  TextSink sink;
  ObservedAnswer heard;
  CallAssembler calls{arguments_bytes_max};
  std::size_t calls_bytes = 0;
  EventStream events{answer_event_bytes_max};
  std::string rest;  ///< A line or a document, as far as it came.
  bool moved = false;

  State(int status, std::string_view content_type, TextSink text_sink)
      : sink(std::move(text_sink)) {
    if (status >= 400) {
      form = Form::error;
    } else if (content_type.starts_with("text/event-stream")) {
      form = Form::events;
    } else if (content_type.find("ndjson") != std::string_view::npos) {
      form = Form::lines;
    }
  }

  void lose() {
    heard.lost = true;
    form = Form::over;
    rest = std::string();
  }

  void feed(std::string_view bytes) {
    std::string begun;
    if (form == Form::unknown) {
      begun = rest.append(bytes);
      const auto first = begun.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
      if (first == std::string::npos) return rest.size() > error_bytes_max ? lose() : void();
      rest.clear();
      const char begin = begun[first];  // some servers send events under another name
      form = begin == 'd' || begin == ':' || begin == 'e' ? Form::events : Form::document;
      bytes = begun;
    }
    switch (form) {
      case Form::events:
        check_events(
            events.feed(bytes, [this](std::string_view data) { return read_event(data); }));
        break;
      case Form::lines:
        feed_lines(bytes);
        break;
      case Form::error:
        rest.append(bytes.substr(0, error_bytes_max - std::min(rest.size(), error_bytes_max)));
        break;
      case Form::document:
        if (rest.size() + bytes.size() > answer_event_bytes_max) return lose();
        rest.append(bytes);
        break;
      case Form::unknown:
      case Form::over:
        break;
    }
  }

  void end() {
    switch (form) {
      case Form::events:
        check_events(events.end([this](std::string_view data) { return read_event(data); }));
        break;
      case Form::lines:
        read_text(rest);
        break;
      case Form::document:
        // A stream of lines whose server calls it a document.
        if (!read_text(rest) && !read_array(rest)) feed_lines(std::exchange(rest, {}) + '\n');
        break;
      case Form::error:
        fail(error_body_from(std::string_view(rest)).message);
        if (heard.error.empty()) heard.error = "no reason given";
        break;
      case Form::unknown:
      case Form::over:
        break;
    }
    form = Form::over;
    rest = std::string();
    drop_half_character(heard.text);
    heard.calls = calls.release();
    std::erase_if(heard.calls, [](const ToolRequest& call) { return call.name.empty(); });
    for (auto& call : heard.calls)
      if (call.arguments.empty()) call.arguments = "{}";
  }

  /// One that is not understood is passed over.
  bool read_event(std::string_view data) {
    read_text(data);
    return form != Form::over;
  }

  void check_events(EventStream::Fed fed) {
    if (fed == EventStream::Fed::too_large) lose();
  }

  void feed_lines(std::string_view bytes) {
    while (!bytes.empty() && form != Form::over) {
      const auto end = bytes.find('\n');
      const auto piece = bytes.substr(0, end);
      if (rest.size() + piece.size() > answer_event_bytes_max) return lose();
      rest.append(piece);
      if (end == std::string_view::npos) return;
      read_text(std::exchange(rest, {}));
      bytes.remove_prefix(end + 1);
    }
  }

  /// Gemini's stream for clients that did not ask for events. False: it is not such an array.
  bool read_array(std::string_view data) {
    const auto value = parse_json(data, answer_values_max);
    if (!value || !value->is_array()) return false;
    for (const json& piece : *value)
      if (piece.is_object()) read_value(piece);
    return true;
  }
  void read_value(const json& piece) {
    moved = false;
    read(piece);
    if (moved) ++heard.pieces;
  }

  /// An event, a line or a document. False: it is not a JSON object. Unknown members are skipped.
  bool read_text(std::string_view data) {
    if (data.starts_with("[DONE]")) {
      heard.complete |= heard.begun;
      return true;
    }
    const auto value = parse_json(data, answer_values_max);
    if (!value) {
      heard.lost |= value.error().code == ErrorCode::exhausted;
      return false;
    }
    if (!value->is_object()) return false;
    read_value(*value);
    return true;
  }

  void read(const json& value) {
    const auto type = text_member(value, "type");
    if (auto error = error_body_from(value)) return fail(error->message);
    if (type == "error") return fail(std::string(text_member(value, "message")));
    read_numbers(value);
    if (const json* choices = array_member(value, "choices")) {
      name(value);
      for (const json& choice : *choices)
        if (integer_member(choice, "index").value_or(0) == 0) read_choice(choice);
    } else if (member(value, "candidates") != nullptr ||
               member(value, "usageMetadata") != nullptr ||
               member(value, "promptFeedback") != nullptr) {
      read_gemini(value);
    } else if (const json* inner = object_member(value, "response");
               inner != nullptr && type.empty()) {  // Gemini's for users who logged in
      read_gemini(*inner);
    } else if (type.starts_with("response.")) {
      read_response_event(type, value);
    } else if (text_member(value, "object") == "response") {
      read_response(value);
    } else if (type == "message") {
      read_message(value);
    } else if (type.starts_with("message_") || type.starts_with("content_block_")) {
      read_message_event(type, value);
    } else if (member(value, "done") != nullptr) {
      read_ollama(value);
    } else if (member(value, "stop") != nullptr && member(value, "content") != nullptr) {
      read_completion(value);
    }
  }

  // -- common to all APIs

  void fail(std::string message) { heard.error = first_characters(message, error_chars_max); }

  void name(const json& value) {
    heard.begun = true;
    if (heard.id.empty()) heard.id = text_member(value, "id").substr(0, 256);
    if (heard.model.empty()) heard.model = text_member(value, "model").substr(0, 128);
  }

  void say(const json* text, std::int64_t& bytes, bool kept) {
    if (text == nullptr) return;
    if (text->is_array()) {  // parts
      for (const json& part : *text) say(member(part, "text"), bytes, kept);
      return;
    }
    if (!text->is_string()) return;
    const std::string_view fragment = text->get_ref<const std::string&>();
    if (fragment.empty()) return;
    moved = true;
    bytes += static_cast<std::int64_t>(fragment.size());
    if (kept) {
      const auto room = answer_text_bytes_max - heard.text.size();
      heard.text.append(fragment.substr(0, room));
    }
    if (sink) sink(fragment);
  }
  void say_text(const json* text) { say(text, heard.text_bytes, true); }
  void say_reasoning(const json* text) { say(text, heard.reasoning_bytes, false); }

  void call(std::optional<std::int64_t> index, std::string_view id, std::string_view tool,
            const json* arguments) {
    const auto piece = arguments == nullptr ? std::string() : text_or_json(*arguments);
    moved = true;
    calls_bytes += calls.add(index, id, tool, piece);
    if (calls.size() > answer_calls_max || calls_bytes > all_calls_bytes_max) lose();
  }

  void finish(std::string_view reason) {
    heard.finish_reason = reason.substr(0, 64);
    heard.complete = true;
  }

  static void count(std::int64_t& into, std::optional<std::int64_t> number) {
    if (number && *number > 0 && *number < INT32_MAX) into = *number;
  }

  void read_numbers(const json& value) {
    if (const json* prompt = object_member(value, "prompt_progress")) {
      std::int64_t read = 0;
      std::int64_t total = 0;
      count(read, integer_member(*prompt, "processed"));
      count(total, integer_member(*prompt, "total"));
      heard.prompt_read = std::max(heard.prompt_read, read);
      heard.prompt_tokens = std::max(heard.prompt_tokens, total);
    }
    if (const json* timings = object_member(value, "timings")) {  // llama.cpp
      count(heard.prompt_tokens, integer_member(*timings, "cache_n").value_or(0) % INT32_MAX +
                                     integer_member(*timings, "prompt_n").value_or(0) % INT32_MAX);
      count(heard.output_tokens, integer_member(*timings, "predicted_n"));
    }
    if (const json* usage = object_member(value, "usage")) {
      const auto input = integer_member(*usage, "input_tokens").value_or(0) % INT32_MAX;
      const auto cached =  // Anthropic counts apart what it had
          integer_member(*usage, "cache_read_input_tokens").value_or(0) % INT32_MAX +
          integer_member(*usage, "cache_creation_input_tokens").value_or(0) % INT32_MAX;
      count(heard.prompt_tokens, input + cached);
      count(heard.prompt_tokens, integer_member(*usage, "prompt_tokens"));
      count(heard.output_tokens, integer_member(*usage, "output_tokens"));
      count(heard.output_tokens, integer_member(*usage, "completion_tokens"));
    }
  }

  // OpenAI: chat and completions.

  void read_choice(const json& choice) {
    const json* said = object_member(choice, "delta");
    if (said == nullptr) said = object_member(choice, "message");
    if (said != nullptr) {
      const json* reasoning = member(*said, "reasoning_content");
      say_reasoning(reasoning != nullptr ? reasoning : member(*said, "reasoning"));
      say_text(member(*said, "content"));
      say_text(member(*said, "refusal"));
      if (const json* list = array_member(*said, "tool_calls")) {
        for (const json& entry : *list) {
          const json* function = object_member(entry, "function");
          const json& asked = function != nullptr ? *function : entry;
          call(integer_member(entry, "index"), text_member(entry, "id"), text_member(asked, "name"),
               member(asked, "arguments"));
        }
      }
      if (const json* asked = object_member(*said, "function_call"))
        call(0, {}, text_member(*asked, "name"), member(*asked, "arguments"));
    }
    say_text(member(choice, "text"));
    if (const auto reason = text_member(choice, "finish_reason"); !reason.empty()) finish(reason);
  }

  // OpenAI: Responses.

  void read_response_event(std::string_view type, const json& event) {
    heard.begun = true;
    if (const json* response = object_member(event, "response")) {
      read_numbers(*response);
      read_response(*response);
    } else if (type == "response.output_text.delta" || type == "response.refusal.delta") {
      say_text(member(event, "delta"));
    } else if (type.starts_with("response.reasoning") && type.ends_with(".delta")) {
      say_reasoning(member(event, "delta"));
    } else if (type.ends_with(".delta")) {
      moved = true;
    } else if (type == "response.output_item.done") {
      if (const json* item = object_member(event, "item")) read_output_call(*item);
    }
  }

  void read_response(const json& response) {
    name(response);
    if (const json* error = object_member(response, "error"))
      fail(std::string(text_member(*error, "message")));
    const auto status = text_member(response, "status");
    if (status == "in_progress" || status == "queued" || status.empty()) return;
    finish(status);
    const bool had_text = heard.text_bytes > 0;
    const json* output = array_member(response, "output");
    if (output == nullptr) return;
    for (const json& item : *output) {
      read_output_call(item);
      if (!had_text && text_member(item, "type") == "message") say_text(member(item, "content"));
    }
  }

  /// A call that a client is to make: those of the server's own tools have no such id.
  void read_output_call(const json& item) {
    const auto type = text_member(item, "type");
    const auto id = text_member(item, "call_id");
    if (!type.ends_with("_call") || id.empty() || calls.has(id)) return;
    const json* asked = nullptr;
    for (const char* field : {"arguments", "input", "action"})
      if (asked == nullptr) asked = member(item, field);
    const auto tool = text_member(item, "name");
    call(std::nullopt, id, tool.empty() ? type : tool, asked);
  }

  // Anthropic.

  void read_message(const json& message) {
    name(message);
    if (const json* content = array_member(message, "content")) {
      std::int64_t index = 0;
      for (const json& block : *content) read_block(index++, block);
    }
    if (const auto reason = text_member(message, "stop_reason"); !reason.empty()) finish(reason);
  }

  void read_block(std::int64_t index, const json& block) {
    const auto type = text_member(block, "type");
    if (type == "tool_use") {
      const json* input = object_member(block, "input");
      call(index, text_member(block, "id"), text_member(block, "name"),
           input == nullptr || input->empty() ? nullptr : input);
    } else if (type == "thinking") {
      say_reasoning(member(block, "thinking"));
    } else {
      say_text(member(block, "text"));
    }
  }

  void read_message_event(std::string_view type, const json& event) {
    heard.begun = true;
    const auto index = integer_member(event, "index").value_or(0);
    const json* delta = object_member(event, "delta");
    if (type == "message_start") {
      if (const json* message = object_member(event, "message")) {
        read_numbers(*message);
        name(*message);
      }
    } else if (type == "content_block_start") {
      if (const json* block = object_member(event, "content_block")) read_block(index, *block);
    } else if (type == "message_stop") {
      heard.complete = true;
    } else if (delta != nullptr && type == "content_block_delta") {
      say_text(member(*delta, "text"));
      say_reasoning(member(*delta, "thinking"));
      // Arguments of a server's own tool belong to no call that a client makes.
      if (const json* piece = member(*delta, "partial_json"); piece != nullptr && calls.has(index))
        call(index, {}, {}, piece);
    } else if (delta != nullptr && type == "message_delta") {
      if (const auto reason = text_member(*delta, "stop_reason"); !reason.empty()) finish(reason);
    }
  }

  // Ollama.

  void read_ollama(const json& value) {
    name(value);
    if (const json* message = object_member(value, "message")) {
      say_reasoning(member(*message, "thinking"));
      say_text(member(*message, "content"));
      if (const json* list = array_member(*message, "tool_calls")) {
        for (const json& entry : *list)
          if (const json* asked = object_member(entry, "function"))
            call(std::nullopt, text_member(entry, "id"), text_member(*asked, "name"),
                 member(*asked, "arguments"));
      }
    }
    say_reasoning(member(value, "thinking"));
    say_text(member(value, "response"));
    if (!flag_member(value, "done")) return;
    count(heard.prompt_tokens, integer_member(value, "prompt_eval_count"));
    count(heard.output_tokens, integer_member(value, "eval_count"));
    const auto reason = text_member(value, "done_reason");
    finish(reason.empty() ? "stop" : reason);
  }

  // Gemini.

  void read_gemini(const json& value) {
    heard.begun = true;
    if (heard.id.empty()) heard.id = text_member(value, "responseId").substr(0, 256);
    if (heard.model.empty()) heard.model = text_member(value, "modelVersion").substr(0, 128);
    if (const json* usage = object_member(value, "usageMetadata")) {
      count(heard.prompt_tokens, integer_member(*usage, "promptTokenCount"));
      count(heard.output_tokens,
            integer_member(*usage, "candidatesTokenCount").value_or(0) % INT32_MAX +
                integer_member(*usage, "thoughtsTokenCount").value_or(0) % INT32_MAX);
    }
    if (const json* feedback = object_member(value, "promptFeedback")) {
      const auto reason = text_member(*feedback, "blockReason");
      if (!reason.empty()) fail("the model server blocked the prompt: " + std::string(reason));
    }
    const json* candidates = array_member(value, "candidates");
    if (candidates == nullptr) return;
    for (const json& candidate : *candidates)
      if (integer_member(candidate, "index").value_or(0) == 0) read_candidate(candidate);
  }

  void read_candidate(const json& candidate) {
    const json* content = object_member(candidate, "content");
    const json* parts = content == nullptr ? nullptr : array_member(*content, "parts");
    if (parts != nullptr) {
      for (const json& part : *parts) {
        if (const json* asked = object_member(part, "functionCall")) {
          call(std::nullopt, text_member(*asked, "id"), text_member(*asked, "name"),
               member(*asked, "args"));
        } else if (flag_member(part, "thought")) {
          say_reasoning(member(part, "text"));
        } else {
          say_text(member(part, "text"));
        }
      }
    }
    if (const auto reason = text_member(candidate, "finishReason"); !reason.empty()) finish(reason);
  }

  // llama.cpp's own.

  void read_completion(const json& value) {
    name(value);
    say_text(member(value, "content"));
    if (!flag_member(value, "stop")) return;
    count(heard.prompt_tokens, integer_member(value, "tokens_evaluated"));
    count(heard.output_tokens, integer_member(value, "tokens_predicted"));
    const bool limit =
        text_member(value, "stop_type") == "limit" || flag_member(value, "stopped_limit");
    finish(limit ? "length" : "stop");
  }
};

AnswerStream::AnswerStream(int status, std::string_view content_type, TextSink sink)
    : state_(std::make_unique<State>(status, content_type, std::move(sink))) {}
AnswerStream::~AnswerStream() = default;
AnswerStream::AnswerStream(AnswerStream&&) noexcept = default;
AnswerStream& AnswerStream::operator=(AnswerStream&&) noexcept = default;

void AnswerStream::feed(std::string_view bytes) {
  state_->feed(bytes);
}
void AnswerStream::end() {
  state_->end();
}
const ObservedAnswer& AnswerStream::heard() const noexcept {
  return state_->heard;
}

}  // namespace watchdog
