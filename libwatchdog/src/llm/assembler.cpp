// A chunk of a stream and a whole answer take the same path: one has a `delta`, the other a
// `message`. Each call of `feed` reads a server's error first, then prompt progress, the first
// choice and the usage. The size limit counts what is kept, so a stream of pings may go on. Only
// `set_if_known` gives calls their ids and drops the probabilities of tokens outside the text: both
// need the whole answer.
#include "llm/assembler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "codec/fields.h"
#include "llm/members.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// Of parts that hold texts.
std::string text_of(const json& content) {
  std::string text;
  if (!content.is_array()) return text;
  for (const json& part : content) text.append(text_member(part, "text"));
  return text;
}

/// Where `part` is last in `all`. In linear time, which std::string::rfind does not promise.
std::size_t last_place(std::string all, std::string part) {
  std::ranges::reverse(all);
  std::ranges::reverse(part);
  const void* found = memmem(all.data(), all.size(), part.data(), part.size());
  if (found == nullptr) return std::string::npos;
  const auto from_end = static_cast<std::size_t>(static_cast<const char*>(found) - all.data());
  return all.size() - from_end - part.size();
}

/// Keeps only the tokens of the text: servers list the reasoning's before it, and after it those
/// that end it or make a call. If they cannot be separated, none.
void keep_tokens_of_text(ChatAnswer& answer) {
  if (answer.tokens.empty()) return;
  std::string all;
  for (const auto& token : answer.tokens) all += token.token;
  const auto begin = answer.text.empty() ? std::string::npos : last_place(all, answer.text);
  if (begin == std::string::npos) {
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
  std::set<std::string> used;
  for (const auto& call : calls) used.insert(call.id);
  std::set<std::string> seen;
  int number = 0;
  for (auto& call : calls) {
    ++number;
    if (!call.id.empty() && seen.insert(call.id).second) continue;
    const std::string stem =
        (response_id.empty() ? "call" : response_id) + "_" + std::to_string(number);
    call.id = stem;
    while (!used.insert(call.id).second) call.id += "x";
    seen.insert(call.id);
  }
}

/// Of one document or event. A value takes up to 160 bytes besides its text, so that values take
/// about three times the bytes; the probabilities of 20,000 tokens with their alternatives fit.
std::size_t values_max(std::size_t bytes_max) {
  return 100'000 + bytes_max / 64;
}

}  // namespace

AnswerAssembler::Fed AnswerAssembler::feed(std::string_view data) {
  newest_.clear();
  if (data.starts_with("[DONE]")) {
    ended_ = true;
    return Fed::end;
  }
  const auto chunk = parse_json(data, values_max(bounds_.bytes_max));
  if (!chunk) return chunk.error().code == ErrorCode::exhausted ? Fed::too_large : Fed::malformed;
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
  if (is_too_large()) return Fed::too_large;
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
  if (bounds_.probabilities) read_tokens(choice);
  if (said == nullptr) return;
  begun_ = true;
  // Some servers send both names, with the same text.
  const json* reasoning = member(*said, "reasoning_content");
  append(answer_.reasoning, reasoning != nullptr ? reasoning : member(*said, "reasoning"));
  append(answer_.text, member(*said, "content"));
  if (const json* calls = array_member(*said, "tool_calls")) {
    for (const json& call : *calls) {
      if (is_too_large()) return;
      if (call.is_object()) read_call(call);
    }
  }
}

void AnswerAssembler::read_call(const json& call) {
  const json* function = object_member(call, "function");
  const json& said = function != nullptr ? *function : call;
  const json* arguments = member(said, "arguments");
  const std::string piece = arguments == nullptr ? std::string() : text_or_json(*arguments);
  count(calls_.add(integer_member(call, "index"), text_member(call, "id"),
                   text_member(said, "name"), piece));
  progress_.bytes += static_cast<std::int64_t>(piece.size());
}

void AnswerAssembler::read_tokens(const json& choice) {
  const json* logprobs = object_member(choice, "logprobs");
  const json* content = logprobs == nullptr ? nullptr : array_member(*logprobs, "content");
  if (content == nullptr) return;
  for (const json& entry : *content) {
    const auto logarithm = number_member(entry, "logprob");
    if (!logarithm || is_too_large()) continue;
    const auto token = text_member(entry, "token");
    answer_.tokens.push_back(
        {.token = std::string(token), .probability = std::exp(std::min(*logarithm, 0.0))});
    count(sizeof(TokenProbability) + token.size());
  }
}

void AnswerAssembler::read_usage(const json& chunk) {
  const auto set_if_known = [](std::int64_t& into, std::optional<std::int64_t> number) {
    if (number && *number > 0) into = *number;
  };
  if (const json* timings = object_member(chunk, "timings")) {  // llama.cpp, without being asked
    const auto cached = integer_member(*timings, "cache_n").value_or(0);
    const auto read = integer_member(*timings, "prompt_n").value_or(0);
    if (cached >= 0 && read >= 0 && cached < INT32_MAX && read < INT32_MAX)
      set_if_known(answer_.prompt_tokens, cached + read);
    set_if_known(answer_.output_tokens, integer_member(*timings, "predicted_n"));
  }
  if (const json* usage = object_member(chunk, "usage")) {
    set_if_known(answer_.prompt_tokens, integer_member(*usage, "prompt_tokens"));
    set_if_known(answer_.output_tokens, integer_member(*usage, "completion_tokens"));
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
  const std::string joined = text->is_string() ? std::string() : text_of(*text);
  const std::string& piece = text->is_string() ? text->get_ref<const std::string&>() : joined;
  to += piece;
  newest_ += piece;
  count(piece.size());
  progress_.bytes += static_cast<std::int64_t>(piece.size());
}

void AnswerAssembler::count(std::size_t bytes) {
  bytes_kept_ += bytes;
}

bool AnswerAssembler::is_too_large() const {
  return bytes_kept_ > bounds_.bytes_max || calls_.size() > answer_calls_max;
}

ChatAnswer AnswerAssembler::finish() {
  answer_.tool_calls = calls_.release();
  keep_tokens_of_text(answer_);
  give_ids(answer_.tool_calls, response_id_);
  return std::move(answer_);
}

}  // namespace watchdog
