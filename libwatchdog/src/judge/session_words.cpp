#include "judge/session_words.h"

#include <algorithm>

#include "privacy/content.h"
#include "text/typed.h"
#include "watchdog/session.h"

namespace watchdog {
namespace {

/// The first line that says something. Agents put markup of their own before what a person wrote.
std::string_view first_line(std::string_view text) {
  std::string_view first;
  while (!text.empty()) {
    auto line = text.substr(0, text.find_first_of("\r\n"));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto begin = line.find_first_not_of(" \t#");
    if (begin == line.npos) continue;
    line.remove_prefix(begin);
    line = line.substr(0, line.find_last_not_of(" \t") + 1);
    if (line.front() != '<') return line;
    if (first.empty()) first = line;
  }
  return first;
}

/// A greeting, or a word. Languages without blanks need fewer characters for as much.
bool is_brief(std::string_view prompt) {
  constexpr std::size_t words_min = 3;
  constexpr std::size_t bytes_min = 16;
  const auto blanks = static_cast<std::size_t>(std::ranges::count(prompt, ' '));
  return blanks + 1 < words_min && prompt.size() < bytes_min;
}

}  // namespace

void note_call(History& history, const Report& report, std::string_view name) {
  constexpr std::size_t name_chars = 32;
  constexpr std::size_t failure_chars = 80;
  auto& words = history.notes.edit().words.edit();
  if (words.recent.size() == recent_calls_max) words.recent.erase(words.recent.begin());
  const bool failed = is_failure(report.kind);
  words.recent.push_back({first_characters(name, name_chars), failed});
  if (failed) words.failure = first_characters(first_line(report.content), failure_chars);
}

void fold_words(History& history, const Report& report) {
  constexpr std::size_t answer_chars = 200;
  const auto& content = report.content;
  // The proxy reports input as a text. Other data of a state change is JSON.
  const bool is_input = report.kind == ReportKind::state_change && report.name == "input" &&
                        !content.starts_with('{');
  const bool is_message = report.kind == ReportKind::message;
  const bool by_person =
      report.kind == ReportKind::user_input || is_input || (is_message && report.name == "user");
  if (content.empty() || !(by_person || (is_message && report.name == "assistant"))) return;
  if (!by_person) {
    history.notes.edit().words.edit().answer = first_characters(content, answer_chars);
    return;
  }
  // A follow-up such as "yes, go on" names no work, so the first prompt that does stays.
  const std::string_view known = history.notes->words->prompt;
  if (!known.empty() && !is_brief(known)) return;
  const auto written = first_line(typed(content));
  if (!written.empty() && (known.empty() || !is_brief(written)))
    history.notes.edit().words.edit().prompt = first_characters(written, title_chars_max);
}

}  // namespace watchdog
