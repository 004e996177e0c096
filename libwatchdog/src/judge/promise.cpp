// The last sentence is split into words. After words such as "now" or "okay" it must begin with
// "I will", "let me" or the like. The next word must be a verb of work.
// Words that hand the next step to somebody else or to a later time make it no announcement.
#include "judge/promise.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace watchdog {
namespace {

constexpr std::size_t message_end_bytes = 400;
constexpr std::size_t sentence_words_kept = 40;

/// Words before the announcement itself.
constexpr std::string_view promise_openers[] = {
    "now", "next", "so", "then", "okay", "ok", "first", "great", "good", "and", "well", "alright"};
/// The words with which it begins.
constexpr std::string_view promise_beginnings[] = {
    "i will", "i'll", "let me", "let us", "let's", "i'm going to", "i am going to", "i shall"};
/// Words between the beginning and the verb.
constexpr std::string_view promise_fillers[] = {"now",   "next",    "also",        "then",
                                                "first", "try to",  "just",        "start",
                                                "by",    "quickly", "go ahead and"};
constexpr std::string_view work_verbs[] = {
    "add",       "adjust",   "analyze", "apply",       "attempt", "begin",    "build",
    "change",    "check",    "clean",   "compile",     "compute", "continue", "convert",
    "create",    "debug",    "delete",  "download",    "edit",    "examine",  "execute",
    "explore",   "extract",  "fetch",   "find",        "fix",     "generate", "get",
    "implement", "inspect",  "install", "investigate", "look",    "make",     "modify",
    "move",      "open",     "proceed", "query",       "read",    "rebuild",  "refactor",
    "remove",    "rename",   "replace", "rerun",       "restart", "retry",    "review",
    "rewrite",   "run",      "search",  "see",         "set",     "start",    "test",
    "try",       "update",   "use",     "validate",    "verify",  "view",     "write",
    "creating",  "checking", "reading", "running",     "looking", "writing",  "analyzing",
    "examining"};
/// Words that leave the step to somebody else, or to a later time.
constexpr std::string_view handovers[] = {
    "you",    "your",  "if",     "once",    "when",  "after",    "until",  "wait",
    "unless", "later", "please", "confirm", "above", "whenever", "before", "assume"};

bool is_between_words(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_sentence_mark(char c) {
  constexpr std::string_view marks = "*_`~\"()[]#>,;:.!-";
  return marks.find(c) != std::string_view::npos;
}

/// Without blanks and marks of Markdown at its end.
std::string_view trimmed_end(std::string_view text) {
  constexpr std::string_view around = " \t\r\n*_`~\")";
  const auto end = text.find_last_not_of(around);
  return text.substr(0, end == text.npos ? 0 : end + 1);
}

/// The last sentence, without the marks that end it. Empty: the text does not end with a sentence.
std::string_view last_sentence(std::string_view text) {
  text = trimmed_end(text);
  constexpr std::string_view ends = ".:!";
  constexpr std::string_view ellipsis = "…";
  if (text.ends_with(ellipsis)) {
    text.remove_suffix(ellipsis.size());
  } else {
    if (text.empty() || ends.find(text.back()) == ends.npos) return {};
    text = text.substr(0, text.find_last_not_of(ends) + 1);
  }
  auto begin = text.rfind('\n') + 1;  // 0 without one
  for (auto at = begin; at + 1 < text.size(); ++at) {
    constexpr std::string_view marks = ".!?";
    if (marks.find(text[at]) != marks.npos && is_between_words(text[at + 1])) begin = at + 2;
  }
  return text.substr(begin);
}

/// In small letters, with one blank between two words and one after the last one.
std::string words_of_sentence(std::string_view sentence) {
  std::string words;
  std::size_t count = 0;
  for (std::size_t at = 0; at < sentence.size() && count < sentence_words_kept;) {
    while (at < sentence.size() && is_between_words(sentence[at])) ++at;
    auto end = at;
    while (end < sentence.size() && !is_between_words(sentence[end])) ++end;
    auto word = sentence.substr(at, end - at);
    at = end;
    while (!word.empty() && is_sentence_mark(word.front())) word.remove_prefix(1);
    while (!word.empty() && is_sentence_mark(word.back())) word.remove_suffix(1);
    if (word.empty()) continue;
    ++count;
    for (std::size_t i = 0; i < word.size(); ++i) {
      constexpr std::string_view curly = "’";
      if (word.substr(i).starts_with(curly)) {
        words += '\'';
        i += curly.size() - 1;
      } else {
        words += word[i] >= 'A' && word[i] <= 'Z' ? static_cast<char>(word[i] + 32) : word[i];
      }
    }
    words += ' ';
  }
  return words;
}

/// Removes one of the phrases from the beginning.
template <class Phrases>
bool take_phrase(std::string_view& words, const Phrases& phrases) {
  for (const std::string_view phrase : phrases) {
    if (words.starts_with(phrase) && words.substr(phrase.size()).starts_with(' ')) {
      words.remove_prefix(phrase.size() + 1);
      return true;
    }
  }
  return false;
}

bool hands_over(std::string_view words) {
  while (!words.empty()) {
    const auto end = std::min(words.find(' '), words.size());
    if (std::ranges::find(handovers, words.substr(0, end)) != std::end(handovers)) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

bool ends_with_promise(std::string_view message) {
  if (message.size() > message_end_bytes) message.remove_prefix(message.size() - message_end_bytes);
  const auto sentence = words_of_sentence(last_sentence(message));
  std::string_view words = sentence;
  if (hands_over(words)) return false;
  while (take_phrase(words, promise_openers)) {
  }
  if (!take_phrase(words, promise_beginnings)) return false;
  while (take_phrase(words, promise_fillers)) {
  }
  return take_phrase(words, work_verbs);
}

}  // namespace watchdog
