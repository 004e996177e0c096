#include "ingest/question.h"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "privacy/content.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t bytes_max = 2'000;
constexpr std::size_t shown_max = 200;
/// Marks of Markdown, quotes and brackets around a sentence.
constexpr std::string_view around = " \t\r*_`~\"')>";

std::string_view trimmed(std::string_view line, std::string_view marks = around) {
  const auto begin = line.find_first_not_of(marks);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(marks) - begin + 1);
}

bool ends_with_question_mark(std::string_view line) {
  // Of European languages, Chinese and Japanese, Arabic.
  constexpr std::string_view marks[] = {"?", "\uFF1F", "\u061F"};
  return std::ranges::any_of(marks, [&](auto mark) { return line.ends_with(mark); });
}

/// `- SQLite`, `* SQLite`, `2. SQLite`, `b) SQLite`
bool is_choice(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  if (begin == line.npos) return false;
  line.remove_prefix(begin);
  if (line.starts_with("- ") || line.starts_with("* ") || line.starts_with("• ")) return true;
  const auto end = line.find_first_of(".)");
  return end != line.npos && end > 0 && end <= 2 &&
         std::ranges::all_of(line.substr(0, end), [](unsigned char c) { return std::isalnum(c); });
}

std::string in_small(std::string_view line) {
  std::string small(line);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

/// True if the text asks its reader: "Why did it fail?" asks nobody.
bool asks_the_reader(std::string_view text) {
  constexpr std::string_view words[] = {"which ",    "shall ",    "should ",    "do you ",
                                        "would you", "could you", "can you",    "may i ",
                                        "are you ",  "is it ok",  "is that ok", "want me to"};
  const auto small = in_small(text);
  return std::ranges::any_of(words, [&](auto word) { return small.find(word) != small.npos; });
}

/// A last line that asks, and then says more: "Which port? I recommend 8080."
bool asks_within(std::string_view line) {
  const auto end = line.rfind("? ");
  if (end == line.npos) return false;
  const auto begin = line.substr(0, end).find_last_of(".!?");
  return asks_the_reader(line.substr(begin == line.npos ? 0 : begin, end - begin));
}

/// The line before a list of choices: "Do you want me to:". "You should:" offers none.
bool offers_choices(std::string_view text) {
  constexpr std::string_view begins[] = {"do you ",   "would you ", "shall i ", "shall we ",
                                         "should i ", "should we ", "which "};
  const auto small = in_small(text);
  return text.ends_with(':') &&
         std::ranges::any_of(begins, [&](auto words) { return small.starts_with(words); });
}

/// A last line that wants an answer without a question mark. Polite ones, such as "let me know if
/// you need anything else", want none.
bool wants_an_answer(std::string_view line) {
  constexpr std::string_view words[] = {"(y/n)",
                                        "[y/n]",
                                        "(yes/no)",
                                        "[yes/no]",
                                        "please confirm",
                                        "please choose",
                                        "please pick",
                                        "please decide",
                                        "please approve",
                                        "tell me which",
                                        "tell me whether",
                                        "tell me how you",
                                        "let me know which",
                                        "let me know whether",
                                        "let me know how you",
                                        "waiting for your",
                                        "awaiting your",
                                        "i need your",
                                        "before i proceed, i need",
                                        "before i go on, i need",
                                        "before i continue, i need",
                                        "pick one",
                                        "choose one"};
  const auto small = in_small(line);
  return std::ranges::any_of(words, [&](auto word) { return small.find(word) != small.npos; });
}

/// Without the marks of Markdown; brackets and quotes stay.
std::string shown(std::string_view line) {
  return std::string(first_characters(trimmed(line, " \t\r*_`>"), shown_max));
}

}  // namespace

std::string closing_question(std::string_view answer) {
  if (answer.size() > bytes_max) answer.remove_prefix(answer.size() - bytes_max);
  bool is_last = true;
  while (!answer.empty()) {
    const auto cut = answer.rfind('\n');
    const auto line = answer.substr(cut == answer.npos ? 0 : cut + 1);
    answer = answer.substr(0, cut == answer.npos ? 0 : cut);
    const auto text = trimmed(line);
    if (text.empty()) continue;
    if (ends_with_question_mark(text)) return shown(line);
    if (is_last && (wants_an_answer(line) || asks_within(text))) return shown(line);
    if (!is_last && offers_choices(text)) return shown(line);
    if (!is_choice(line)) return {};
    is_last = false;
  }
  return {};
}

}  // namespace watchdog::monitor
