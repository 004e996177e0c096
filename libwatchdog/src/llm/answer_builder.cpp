#include "llm/answer_builder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "llm/members.h"
#include "privacy/content.h"
#include "text/utf8.h"

namespace watchdog {
namespace {

constexpr std::size_t error_chars_max = 2'000;
constexpr std::size_t all_calls_bytes_max = 8U << 20U;
constexpr std::size_t id_bytes_max = 256;
constexpr std::size_t name_bytes_max = 128;
constexpr std::size_t reason_bytes_max = 64;

}  // namespace

void AnswerBuilder::name(std::string_view id, std::string_view model) {
  begin();
  if (heard_.id.empty()) heard_.id = id.substr(0, id_bytes_max);
  if (heard_.model.empty()) heard_.model = model.substr(0, name_bytes_max);
}

void AnswerBuilder::say(const nlohmann::json* text, std::int64_t& bytes, bool kept) {
  if (text == nullptr) return;
  if (text->is_array()) {  // parts
    for (const auto& part : *text) say(member(part, "text"), bytes, kept);
    return;
  }
  if (!text->is_string()) return;
  const std::string_view fragment = text->get_ref<const std::string&>();
  if (fragment.empty()) return;
  move();
  bytes += static_cast<std::int64_t>(fragment.size());
  if (kept) heard_.text.append(fragment.substr(0, answer_text_bytes_max - heard_.text.size()));
  if (sink_) sink_(fragment);
}

void AnswerBuilder::call(std::optional<std::int64_t> index, std::string_view id,
                         std::string_view tool, const nlohmann::json* arguments) {
  const auto piece = arguments == nullptr ? std::string() : text_or_json(*arguments);
  move();
  calls_bytes_ += calls_.add(index, id, tool, piece);
  if (calls_.size() <= answer_calls_max && calls_bytes_ <= all_calls_bytes_max) return;
  is_full_ = true;
  lose();
}

void AnswerBuilder::count(std::int64_t& into, std::optional<std::int64_t> number) {
  if (number && *number > 0 && *number < INT32_MAX) into = *number;
}

void AnswerBuilder::count_read(std::optional<std::int64_t> read,
                               std::optional<std::int64_t> total) {
  std::int64_t newest = 0;
  count(newest, read);
  heard_.prompt_read = std::max(heard_.prompt_read, newest);
  newest = 0;
  count(newest, total);
  heard_.prompt_tokens = std::max(heard_.prompt_tokens, newest);
}

void AnswerBuilder::finish(std::string_view reason) {
  heard_.finish_reason = reason.substr(0, reason_bytes_max);
  complete();
}

void AnswerBuilder::fail(std::string_view message) {
  heard_.error = first_characters(message, error_chars_max);
}

void AnswerBuilder::end_piece() {
  if (std::exchange(moved_, false)) ++heard_.pieces;
}

void AnswerBuilder::end() {
  drop_half_character(heard_.text);
  heard_.calls = calls_.release();
  std::erase_if(heard_.calls, [](const ToolRequest& call) { return call.name.empty(); });
  for (auto& call : heard_.calls)
    if (call.arguments.empty()) call.arguments = "{}";
}

}  // namespace watchdog
