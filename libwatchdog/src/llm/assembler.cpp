#include "llm/assembler.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "llm/members.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// Text as a string, or as parts that are or hold texts.
std::string text_of(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (!content.is_array()) return text;
  for (const json& part : content) text.append(text_member(part, "text"));
  return text;
}

/// Only the tokens that the text consists of: servers list those of the reasoning before it, too.
/// Where that cannot be told, none.
void keep_tokens_of_text(ChatAnswer& answer) {
  std::string all;
  for (const auto& token : answer.tokens) all += token.token;
  const auto begin = all.rfind(answer.text);
  if (begin == std::string::npos || answer.text.empty()) {
    if (!answer.reasoning.empty()) answer.tokens.clear();
    return;
  }
  const auto end = begin + answer.text.size();
  std::size_t at = 0;
  std::erase_if(answer.tokens, [&](const TokenProbability& token) {
    const auto from = at;
    at += token.token.size();
    return at <= begin || from >= end;
  });
}

/// Answers to calls name their id, so each call gets one of its own.
void give_ids(std::vector<ToolRequest>& calls, const std::string& response_id) {
  std::set<std::string> taken;
  for (const auto& call : calls) taken.insert(call.id);
  std::set<std::string> seen;
  int number = 0;
  for (auto& call : calls) {
    ++number;
    if (!call.id.empty() && seen.insert(call.id).second) continue;
    const std::string stem =
        (response_id.empty() ? "call" : response_id) + "_" + std::to_string(number);
    call.id = stem;
    while (!taken.insert(call.id).second) call.id += "x";
    seen.insert(call.id);
  }
}

bool is_object_text(std::string_view text) {
  return text.starts_with('{') && json::accept(text);
}

}  // namespace

AnswerAssembler::Fed AnswerAssembler::feed(std::string_view data) {
  newest_.clear();
  if (data.starts_with("[DONE]")) {
    ended_ = true;
    return Fed::end;
  }
  const auto chunk = json_from(data);
  if (!chunk) return Fed::malformed;
  if (auto error = error_body_from(*chunk)) {
    error_ = std::move(*error);
    return Fed::error;
  }
  const auto before = progress_;
  const bool prompt_moved = read_prompt(*chunk);
  if (answer_.model.empty()) {
    answer_.model = text_member(*chunk, "model");
    count(answer_.model.size());
  }
  if (response_id_.empty()) response_id_ = text_member(*chunk, "id").substr(0, 64);
  if (const json* choices = array_member(*chunk, "choices")) {
    for (const json& choice : *choices) {
      if (integer_member(choice, "index").value_or(0) == 0) read_choice(choice);
    }
  }
  read_usage(*chunk);
  if (bytes_kept_ > bytes_max_) return Fed::too_large;
  if (progress_.bytes > before.bytes) {
    ++progress_.pieces;
    return Fed::news;
  }
  return prompt_moved ? Fed::news : Fed::nothing;
}

void AnswerAssembler::read_choice(const json& choice) {
  const json* said = object_member(choice, "delta");
  if (said == nullptr) said = object_member(choice, "message");
  if (const auto reason = text_member(choice, "finish_reason"); !reason.empty()) {
    answer_.finish_reason = reason.substr(0, 64);
    begun_ = true;
  }
  read_tokens(choice);
  if (said == nullptr) return;
  begun_ = true;
  // Some servers send both names, with the same text.
  const json* reasoning = member(*said, "reasoning_content");
  append(answer_.reasoning, reasoning != nullptr ? reasoning : member(*said, "reasoning"));
  append(answer_.text, member(*said, "content"));
  if (const json* calls = array_member(*said, "tool_calls")) {
    for (const json& call : *calls) {
      if (bytes_kept_ > bytes_max_) return;
      if (call.is_object()) read_call(call);
    }
  }
}

void AnswerAssembler::read_call(const json& call) {
  const json* function = object_member(call, "function");
  const json& said = function != nullptr ? *function : call;
  const auto id = text_member(call, "id");
  const auto name = text_member(said, "name");
  auto& request = answer_.tool_calls[place_of(call, id, name)];
  if (request.id.empty()) {
    request.id = id;
    count(id.size());
  }
  if (request.name.empty()) {
    request.name = name;
    count(name.size());
  }
  const json* arguments = member(said, "arguments");
  if (arguments == nullptr) return;
  const std::string piece = arguments->is_string()
                                ? arguments->get<std::string>()
                                : arguments->dump(-1, ' ', false, json::error_handler_t::replace);
  request.arguments += piece;
  count(piece.size());
  progress_.bytes += static_cast<std::int64_t>(piece.size());
}

/// Which call it belongs to. An index tells, unless the same index comes with another call's id or
/// name; without an index the id tells, and without both a name begins a new call.
std::size_t AnswerAssembler::place_of(const json& call, std::string_view id,
                                      std::string_view name) {
  const auto index = integer_member(call, "index");
  const auto& calls = answer_.tool_calls;
  const auto found = std::find_if(places_.rbegin(), places_.rend(), [&](const CallPlace& place) {
    const ToolRequest& known = calls[place.at];
    if (index) {
      if (place.index != index) return false;
      if (!id.empty() && !known.id.empty()) return id == known.id;
      const bool another = !name.empty() && !known.name.empty() && is_object_text(known.arguments);
      return !another;
    }
    return id.empty() ? name.empty() : id == known.id;
  });
  if (found != places_.rend()) return found->at;
  places_.push_back({.index = index, .at = calls.size()});
  answer_.tool_calls.emplace_back();
  count(sizeof(ToolRequest) + sizeof(CallPlace));
  return calls.size() - 1;
}

void AnswerAssembler::read_tokens(const json& choice) {
  const json* logprobs = object_member(choice, "logprobs");
  const json* content = logprobs == nullptr ? nullptr : array_member(*logprobs, "content");
  if (content == nullptr) return;
  for (const json& entry : *content) {
    const auto logarithm = number_member(entry, "logprob");
    if (!logarithm || bytes_kept_ > bytes_max_) continue;
    const auto token = text_member(entry, "token");
    answer_.tokens.push_back(
        {.token = std::string(token), .probability = std::exp(std::min(*logarithm, 0.0))});
    count(sizeof(TokenProbability) + token.size());
  }
}

void AnswerAssembler::read_usage(const json& chunk) {
  const auto take = [](std::int64_t& into, std::optional<std::int64_t> number) {
    if (number && *number > 0) into = *number;
  };
  if (const json* timings = object_member(chunk, "timings")) {  // llama.cpp, without being asked
    const auto cached = integer_member(*timings, "cache_n").value_or(0);
    const auto read = integer_member(*timings, "prompt_n").value_or(0);
    if (cached >= 0 && read >= 0 && cached < INT32_MAX && read < INT32_MAX)
      take(answer_.prompt_tokens, cached + read);
    take(answer_.output_tokens, integer_member(*timings, "predicted_n"));
  }
  if (const json* usage = object_member(chunk, "usage")) {
    take(answer_.prompt_tokens, integer_member(*usage, "prompt_tokens"));
    take(answer_.output_tokens, integer_member(*usage, "completion_tokens"));
  }
}

bool AnswerAssembler::read_prompt(const json& chunk) {
  const json* prompt = object_member(chunk, "prompt_progress");
  if (prompt == nullptr) return false;
  const auto total = integer_member(*prompt, "total").value_or(0);
  const auto processed = integer_member(*prompt, "processed").value_or(0);
  progress_.prompt_tokens = std::max(progress_.prompt_tokens, total);
  progress_.prompt_read = std::max(progress_.prompt_read, processed);
  return true;
}

void AnswerAssembler::append(std::string& to, const json* text) {
  if (text == nullptr) return;
  const std::string piece = text_of(*text);
  to += piece;
  newest_ += piece;
  count(piece.size());
  progress_.bytes += static_cast<std::int64_t>(piece.size());
}

void AnswerAssembler::count(std::size_t bytes) {
  bytes_kept_ += bytes;
}

ChatAnswer AnswerAssembler::take() {
  keep_tokens_of_text(answer_);
  give_ids(answer_.tool_calls, response_id_);
  return std::move(answer_);
}

}  // namespace watchdog
