#include "support/scripted_answer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

namespace watchdog::test {
namespace {

using nlohmann::json;
using Part = ScriptedToken::Part;

std::uint64_t digest_of(std::string_view text) {
  std::uint64_t digest = 14'695'981'039'346'656'037U;  // FNV-1a
  for (const char byte : text) {
    digest = (digest ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  }
  return digest;
}

/// Text as APIs hold it: a string, or a list of parts with some.
std::string text_in(const json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string all;
  if (!content.is_array()) return all;
  for (const json& part : content)
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      all += part["text"].get<std::string>() + "\n";
  return all;
}

json member_of(const json& body, const char* name) {
  return body.is_object() ? body.value(name, json()) : json();
}

/// The newest text of the user, and how often the model has answered since.
struct Newest {
  std::string text;
  std::size_t answers = 0;
};

Newest newest_of(const json& body) {
  Newest newest;
  for (const char* name : {"messages", "input", "prompt"}) {
    const json list = member_of(body, name);
    if (list.is_string()) return {list.get<std::string>(), 0};
    if (!list.is_array() || list.empty()) continue;
    bool answered = false;  // several items of one answer come one after another
    for (const json& item : list) {
      if (!item.is_object()) continue;
      const std::string role = item.value("role", json()).is_string() ? item["role"] : json("");
      const std::string text = text_in(item.value("content", json()));
      if (role == "user" && !text.empty()) newest = {text, 0};
      const bool is_answer = role == "assistant" || member_of(item, "type") == "function_call";
      if (is_answer && !answered) ++newest.answers;
      answered = is_answer;
    }
    return newest;
  }
  return newest;
}

/// Split behind each blank, so that the pieces make up the text.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = text.find(' ');
    const auto size = end == std::string_view::npos ? text.size() : end + 1;
    words.emplace_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return words;
}

std::string babble(std::uint64_t digest, std::int64_t count) {
  static constexpr std::array<std::string_view, 16> words = {
      "slow",  "river",  "stone", "quiet", "lantern", "seven",  "meadow",  "copper",
      "north", "window", "paper", "amber", "garden",  "thread", "harbour", "cloud"};
  std::string text;
  for (std::int64_t at = 0; at < count; ++at) {
    digest = digest * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    if (at > 0) text += ' ';
    text += words.at(digest >> 60U);
  }
  return text;
}

/// The lines to be answered now; nothing: they are all answered.
std::optional<std::vector<std::string_view>> part_of(std::string_view script, std::size_t answers) {
  std::vector<std::vector<std::string_view>> parts(1);
  bool again = false;
  for (std::size_t at = 0; at <= script.size();) {
    const auto end = std::min(script.find('\n', at), script.size());
    const auto line = script.substr(at, end - at);
    at = end + 1;
    if (line == "THEN") parts.emplace_back();
    if (line == "AGAIN") again = true;
    if (line.starts_with("SAY ") || line.starts_with("CALL ")) parts.back().push_back(line);
  }
  if (answers < parts.size()) return parts[answers];
  if (again) return parts.back();
  return std::nullopt;
}

void add_call(ScriptedAnswer& answer, std::string_view line) {
  const auto blank = std::min(line.find(' '), line.size());
  ScriptedCall call{.id = "call_" + answer.id + std::to_string(answer.calls.size()),
                    .name = std::string(line.substr(0, blank)),
                    .arguments = std::string(line.substr(std::min(blank + 1, line.size())))};
  if (call.arguments.empty()) call.arguments = "{}";
  for (auto& word : words_of(call.arguments))
    answer.tokens.push_back({Part::call, answer.calls.size(), std::move(word)});
  answer.calls.push_back(std::move(call));
}

void add_words(ScriptedAnswer& answer, Part part, std::string_view text) {
  for (auto& word : words_of(text)) answer.tokens.push_back({part, 0, std::move(word)});
}

}  // namespace

ScriptedAnswer answer_to(const json& body, bool streams, const ScriptedLengths& lengths) {
  ScriptedAnswer answer;
  const auto flag = [&](const char* name, bool absent) {
    const json value = member_of(body, name);
    return value.is_boolean() ? value.get<bool>() : absent;
  };
  for (const char* name : {"system", "instructions", "tools", "messages", "input", "prompt"}) {
    const json part = member_of(body, name);
    if (!part.is_null()) answer.prompt += part.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  const std::uint64_t digest = digest_of(answer.prompt);
  answer.id = std::to_string(digest % 1'000'000'000);
  const json model = member_of(body, "model");
  answer.model = model.is_string() ? model.get<std::string>() : "small";
  answer.stream = flag("stream", streams);
  answer.return_progress = flag("return_progress", false);
  answer.usage = member_of(member_of(body, "stream_options"), "include_usage") == true;
  answer.prompt_tokens =
      lengths.prompt > 0
          ? lengths.prompt
          : std::max<std::int64_t>(1, static_cast<std::int64_t>(answer.prompt.size()) / 4);

  add_words(answer, Part::reasoning, babble(digest + 1, lengths.reasoning));
  const Newest newest = newest_of(body);
  const auto lines = part_of(newest.text, newest.answers);
  if (!lines || lines->empty()) add_words(answer, Part::text, babble(digest, lengths.answer));
  if (lines) {
    for (const auto line : *lines) {
      line.starts_with("SAY ") ? add_words(answer, Part::text, line.substr(4))
                               : add_call(answer, line.substr(5));
    }
  }
  for (const char* name :
       {"max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict", "num_predict"}) {
    json limit = member_of(body, name);
    if (limit.is_null()) limit = member_of(member_of(body, "options"), name);
    if (!limit.is_number_integer() || limit.get<std::int64_t>() < 1) continue;
    const auto most = static_cast<std::size_t>(limit.get<std::int64_t>());
    answer.cut = answer.cut || most < answer.tokens.size();
    answer.tokens.resize(std::min(most, answer.tokens.size()));
  }
  return answer;
}

}  // namespace watchdog::test
