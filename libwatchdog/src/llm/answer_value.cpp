// Reads a JSON value of an answer by its members, whatever API it belongs to. Each API has its own
// functions; texts, calls and tokens of all of them end up in one `AnswerBuilder`. A member of an
// unexpected type counts as absent.
#include "llm/answer_value.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "llm/error_body.h"
#include "llm/members.h"

namespace watchdog {
namespace {

using nlohmann::json;

bool flag_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  return found != nullptr && found->is_boolean() && found->get<bool>();
}

void read_name(const json& value, AnswerBuilder& answer) {
  answer.name(text_member(value, "id"), text_member(value, "model"));
}

void read_numbers(const json& value, AnswerBuilder& answer) {
  if (const json* prompt = object_member(value, "prompt_progress"))
    answer.count_read(integer_member(*prompt, "processed"), integer_member(*prompt, "total"));
  if (const json* timings = object_member(value, "timings")) {  // llama.cpp
    answer.count_prompt(integer_member(*timings, "cache_n").value_or(0) % INT32_MAX +
                        integer_member(*timings, "prompt_n").value_or(0) % INT32_MAX);
    answer.count_cached(integer_member(*timings, "cache_n"));
    answer.count_output(integer_member(*timings, "predicted_n"));
  }
  if (const json* usage = object_member(value, "usage")) {
    const auto input = integer_member(*usage, "input_tokens").value_or(0) % INT32_MAX;
    const auto cached =  // Anthropic counts apart what it had
        integer_member(*usage, "cache_read_input_tokens").value_or(0) % INT32_MAX +
        integer_member(*usage, "cache_creation_input_tokens").value_or(0) % INT32_MAX;
    answer.count_prompt(input + cached);
    answer.count_prompt(integer_member(*usage, "prompt_tokens"));
    answer.count_output(integer_member(*usage, "output_tokens"));
    answer.count_output(integer_member(*usage, "completion_tokens"));
    answer.count_cached(integer_member(*usage, "cache_read_input_tokens"));
    for (const auto* details : {"prompt_tokens_details", "input_tokens_details"})
      if (const json* of = object_member(*usage, details))
        answer.count_cached(integer_member(*of, "cached_tokens"));
  }
}

// OpenAI: chat and completions.

void read_choice(const json& choice, AnswerBuilder& answer) {
  const json* said = object_member(choice, "delta");
  if (said == nullptr) said = object_member(choice, "message");
  if (said != nullptr) {
    const json* reasoning = member(*said, "reasoning_content");
    answer.say_reasoning(reasoning != nullptr ? reasoning : member(*said, "reasoning"));
    answer.say_text(member(*said, "content"));
    answer.say_text(member(*said, "refusal"));
    if (const json* list = array_member(*said, "tool_calls")) {
      for (const json& entry : *list) {
        const json* function = object_member(entry, "function");
        const json& asked = function != nullptr ? *function : entry;
        answer.call(integer_member(entry, "index"), text_member(entry, "id"),
                    text_member(asked, "name"), member(asked, "arguments"));
      }
    }
    if (const json* asked = object_member(*said, "function_call"))
      answer.call(0, {}, text_member(*asked, "name"), member(*asked, "arguments"));
  }
  answer.say_text(member(choice, "text"));
  if (const auto reason = text_member(choice, "finish_reason"); !reason.empty())
    answer.finish(reason);
}

// OpenAI: Responses.

/// A call that a client is to make: those of the server's own tools have no such id.
void read_output_call(const json& item, AnswerBuilder& answer) {
  const auto type = text_member(item, "type");
  const auto id = text_member(item, "call_id");
  if (!type.ends_with("_call") || id.empty() || answer.has_call(id)) return;
  const json* asked = nullptr;
  for (const char* field : {"arguments", "input", "action"})
    if (asked == nullptr) asked = member(item, field);
  const auto tool = text_member(item, "name");
  answer.call(std::nullopt, id, tool.empty() ? type : tool, asked);
}

void read_response(const json& response, AnswerBuilder& answer) {
  read_name(response, answer);
  if (const json* error = object_member(response, "error"))
    answer.fail(std::string(text_member(*error, "message")));
  const auto status = text_member(response, "status");
  if (status == "in_progress" || status == "queued" || status.empty()) return;
  const auto* details = object_member(response, "incomplete_details");
  const bool is_cut = status == "incomplete" && details != nullptr &&
                      text_member(*details, "reason") == "max_output_tokens";
  answer.finish(is_cut ? "length" : status);
  const bool had_text = answer.heard().text_bytes > 0;
  const json* output = array_member(response, "output");
  if (output == nullptr) return;
  for (const json& item : *output) {
    read_output_call(item, answer);
    if (!had_text && text_member(item, "type") == "message")
      answer.say_text(member(item, "content"));
  }
}

void read_response_event(std::string_view type, const json& event, AnswerBuilder& answer) {
  answer.begin();
  if (const json* response = object_member(event, "response")) {
    read_numbers(*response, answer);
    read_response(*response, answer);
  } else if (type == "response.output_text.delta" || type == "response.refusal.delta") {
    answer.say_text(member(event, "delta"));
  } else if (type.starts_with("response.reasoning") && type.ends_with(".delta")) {
    answer.say_reasoning(member(event, "delta"));
  } else if (type.ends_with(".delta")) {
    answer.move();
  } else if (type == "response.output_item.done") {
    if (const json* item = object_member(event, "item")) read_output_call(*item, answer);
  }
}

// Anthropic.

void read_block(std::int64_t index, const json& block, AnswerBuilder& answer) {
  const auto type = text_member(block, "type");
  if (type == "tool_use") {
    const json* input = object_member(block, "input");
    answer.call(index, text_member(block, "id"), text_member(block, "name"),
                input == nullptr || input->empty() ? nullptr : input);
  } else if (type == "thinking") {
    answer.say_reasoning(member(block, "thinking"));
  } else {
    answer.say_text(member(block, "text"));
  }
}

void read_message(const json& message, AnswerBuilder& answer) {
  read_name(message, answer);
  if (const json* content = array_member(message, "content")) {
    std::int64_t index = 0;
    for (const json& block : *content) read_block(index++, block, answer);
  }
  if (const auto reason = text_member(message, "stop_reason"); !reason.empty())
    answer.finish(reason);
}

void read_message_event(std::string_view type, const json& event, AnswerBuilder& answer) {
  answer.begin();
  const auto index = integer_member(event, "index").value_or(0);
  const json* delta = object_member(event, "delta");
  if (type == "message_start") {
    if (const json* message = object_member(event, "message")) {
      read_numbers(*message, answer);
      read_name(*message, answer);
    }
  } else if (type == "content_block_start") {
    if (const json* block = object_member(event, "content_block"))
      read_block(index, *block, answer);
  } else if (type == "message_stop") {
    answer.complete();
  } else if (delta != nullptr && type == "content_block_delta") {
    answer.say_text(member(*delta, "text"));
    answer.say_reasoning(member(*delta, "thinking"));
    // Arguments of a server's own tool belong to no call that a client makes.
    if (const json* piece = member(*delta, "partial_json");
        piece != nullptr && answer.has_call(index))
      answer.call(index, {}, {}, piece);
  } else if (delta != nullptr && type == "message_delta") {
    if (const auto reason = text_member(*delta, "stop_reason"); !reason.empty())
      answer.finish(reason);
  }
}

// Ollama.

void read_ollama(const json& value, AnswerBuilder& answer) {
  read_name(value, answer);
  if (const json* message = object_member(value, "message")) {
    answer.say_reasoning(member(*message, "thinking"));
    answer.say_text(member(*message, "content"));
    if (const json* list = array_member(*message, "tool_calls")) {
      for (const json& entry : *list)
        if (const json* asked = object_member(entry, "function"))
          answer.call(std::nullopt, text_member(entry, "id"), text_member(*asked, "name"),
                      member(*asked, "arguments"));
    }
  }
  answer.say_reasoning(member(value, "thinking"));
  answer.say_text(member(value, "response"));
  if (!flag_member(value, "done")) return;
  answer.count_prompt(integer_member(value, "prompt_eval_count"));
  answer.count_output(integer_member(value, "eval_count"));
  const auto reason = text_member(value, "done_reason");
  answer.finish(reason.empty() ? "stop" : reason);
}

// Gemini.

void read_candidate(const json& candidate, AnswerBuilder& answer) {
  const json* content = object_member(candidate, "content");
  const json* parts = content == nullptr ? nullptr : array_member(*content, "parts");
  if (parts != nullptr) {
    for (const json& part : *parts) {
      if (const json* asked = object_member(part, "functionCall")) {
        answer.call(std::nullopt, text_member(*asked, "id"), text_member(*asked, "name"),
                    member(*asked, "args"));
      } else if (flag_member(part, "thought")) {
        answer.say_reasoning(member(part, "text"));
      } else {
        answer.say_text(member(part, "text"));
      }
    }
  }
  if (const auto reason = text_member(candidate, "finishReason"); !reason.empty())
    answer.finish(reason);
}

void read_gemini(const json& value, AnswerBuilder& answer) {
  answer.begin();
  answer.name(text_member(value, "responseId"), text_member(value, "modelVersion"));
  if (const json* usage = object_member(value, "usageMetadata")) {
    answer.count_prompt(integer_member(*usage, "promptTokenCount"));
    answer.count_cached(integer_member(*usage, "cachedContentTokenCount"));
    answer.count_output(integer_member(*usage, "candidatesTokenCount").value_or(0) % INT32_MAX +
                        integer_member(*usage, "thoughtsTokenCount").value_or(0) % INT32_MAX);
  }
  if (const json* feedback = object_member(value, "promptFeedback")) {
    const auto reason = text_member(*feedback, "blockReason");
    if (!reason.empty()) answer.fail("the model server blocked the prompt: " + std::string(reason));
  }
  const json* candidates = array_member(value, "candidates");
  if (candidates == nullptr) return;
  for (const json& candidate : *candidates)
    if (integer_member(candidate, "index").value_or(0) == 0) read_candidate(candidate, answer);
}

// llama.cpp's own.

void read_completion(const json& value, AnswerBuilder& answer) {
  read_name(value, answer);
  answer.say_text(member(value, "content"));
  if (!flag_member(value, "stop")) return;
  answer.count_prompt(integer_member(value, "tokens_evaluated"));
  answer.count_output(integer_member(value, "tokens_predicted"));
  const bool limit =
      text_member(value, "stop_type") == "limit" || flag_member(value, "stopped_limit");
  answer.finish(limit ? "length" : "stop");
}

}  // namespace

void read_answer_value(const json& value, AnswerBuilder& answer) {
  const auto type = text_member(value, "type");
  if (auto error = error_body_from(value)) return answer.fail(error->message);
  if (type == "error") return answer.fail(std::string(text_member(value, "message")));
  read_numbers(value, answer);
  if (const json* choices = array_member(value, "choices")) {
    read_name(value, answer);
    for (const json& choice : *choices)
      if (integer_member(choice, "index").value_or(0) == 0) read_choice(choice, answer);
  } else if (member(value, "candidates") != nullptr || member(value, "usageMetadata") != nullptr ||
             member(value, "promptFeedback") != nullptr) {
    read_gemini(value, answer);
  } else if (const json* inner = object_member(value, "response");
             inner != nullptr && type.empty()) {  // Gemini's for users who logged in
    read_gemini(*inner, answer);
  } else if (type.starts_with("response.")) {
    read_response_event(type, value, answer);
  } else if (text_member(value, "object") == "response") {
    read_response(value, answer);
  } else if (type == "message") {
    read_message(value, answer);
  } else if (type.starts_with("message_") || type.starts_with("content_block_")) {
    read_message_event(type, value, answer);
  } else if (member(value, "done") != nullptr) {
    read_ollama(value, answer);
  } else if (member(value, "stop") != nullptr && member(value, "content") != nullptr) {
    read_completion(value, answer);
  }
}

}  // namespace watchdog
