// Tells prose from what programs print, line by line. A line's words are counted by what they
// consist of: plain words of letters, and others, which have digits, slashes, brackets and the
// like. A line of prose has three plain words or more, at most half as many others, and the shape
// of a sentence. A printed line has more others than that, or begins as lines of logs and shells
// do. Everything between is neutral, and decides nothing.
#include "judge/prose.h"

#include <algorithm>
#include <array>
#include <utility>

#include "judge/text_loop.h"

namespace watchdog {
namespace {

/// The part of a message that is read. Reading ends earlier after `decisive_bytes` of prose and
/// printed text.
constexpr std::size_t decisive_bytes = 256;
constexpr std::size_t looked_at_bytes = 512;
/// From this number of words on a line is a sentence, whatever they are.
constexpr int sentence_words_min = 8;
constexpr int prose_words_min = 3;
constexpr std::size_t level_bytes_max = 8;

enum Class : std::uint8_t { blank = 1, letter = 2, joint = 4, opener = 8, closer = 16, odd = 32 };

constexpr auto class_of = [] {
  std::array<std::uint8_t, 256> classes{};
  for (std::size_t byte = 0; byte < classes.size(); ++byte) {
    const auto c = static_cast<char>(byte);
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || byte >= 0x80;
    classes[byte] = is_letter ? letter : (c == ' ' || (c >= '\t' && c <= '\r')) ? blank : odd;
  }
  const auto set = [&](std::string_view characters, unsigned bits) {
    for (const char c : characters)
      classes[static_cast<std::uint8_t>(c)] = static_cast<std::uint8_t>(bits);
  };
  set("-", joint);
  set("'", joint | opener | closer);
  set("\"*_`", opener | closer);
  set("(", opener);
  set(").,;:!?", closer);
  return classes;
}();

constexpr unsigned class_at(char c) noexcept {
  return class_of[static_cast<std::uint8_t>(c)];
}

constexpr std::array<std::string_view, 6> levels{
    "warning:", "error:", "info:", "debug:", "fatal:", "trace:"};
constexpr std::array<std::string_view, 8> loud_levels{"WARNING", "WARN",  "ERROR",  "INFO",
                                                      "DEBUG",   "FATAL", "NOTICE", "TRACE"};
constexpr std::array<std::string_view, 5> prompts{"$ ", ">>> ", "+ ", "% ", "root@"};
/// The commonest words of English, which programs seldom print.
constexpr std::array<std::string_view, 24> function_words{
    "the",  "a",    "an",  "to",   "of",  "and", "is",  "it",    "i",     "we", "you",  "that",
    "this", "with", "for", "will", "was", "are", "not", "let's", "would", "be", "have", "can"};

/// A word without the signs around it.
std::string_view bare(std::string_view word) noexcept {
  while (!word.empty() && (class_at(word.front()) & opener) != 0) word.remove_prefix(1);
  while (!word.empty() && (class_at(word.back()) & closer) != 0) word.remove_suffix(1);
  return word;
}

bool is_level(std::string_view word) noexcept {
  if (word.size() > level_bytes_max) return false;
  if (std::find(levels.begin(), levels.end(), word) != levels.end()) return true;
  if (!word.empty() && word.back() == ':') word.remove_suffix(1);
  return std::find(loud_levels.begin(), loud_levels.end(), word) != loud_levels.end();
}

bool is_function_word(std::string_view word) noexcept {
  constexpr std::size_t bytes_max = 5;
  if (word.size() > bytes_max) return false;
  std::array<char, bytes_max> folded{};
  std::transform(word.begin(), word.end(), folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  });
  const std::string_view lower(folded.data(), word.size());
  return std::find(function_words.begin(), function_words.end(), lower) != function_words.end();
}

/// Markdown and JSON: a model writes them, and so do programs.
bool is_markup(std::string_view line) noexcept {
  constexpr std::string_view marks = "|>{}\"#";
  if (marks.find(line.front()) != std::string_view::npos) return true;
  const bool bullet = line.size() > 1 && line[1] == ' ' &&
                      std::string_view("-*").find(line.front()) != std::string_view::npos;
  if (bullet) return true;
  const auto digits = line.find_first_not_of("0123456789");
  return digits != 0 && digits < 4 && digits + 1 < line.size() &&
         (line[digits] == '.' || line[digits] == ')') && line[digits + 1] == ' ';
}

/// The next word of a text, from `at` on, which it moves behind it. Empty at the end.
struct NextWord {
  std::string_view whole;
  std::string_view bare;
  bool is_plain = false;
};
NextWord next_word(std::string_view text, std::size_t& at) noexcept {
  while (at < text.size() && class_at(text[at]) == blank) ++at;
  const auto begin = at;
  unsigned classes = 0;
  for (; at < text.size() && class_at(text[at]) != blank; ++at) classes |= class_at(text[at]);
  NextWord word{.whole = text.substr(begin, at - begin)};
  word.bare = classes == letter ? word.whole : bare(word.whole);
  word.is_plain = classes == letter ||
                  (!word.bare.empty() && class_at(word.bare.front()) == letter &&
                   std::all_of(word.bare.begin(), word.bare.end(),
                               [](char c) { return (class_at(c) & (letter | joint)) != 0; }));
  return word;
}

}  // namespace

WordCount words_in(std::string_view text) noexcept {
  constexpr std::size_t bytes_max = 1'024;
  text = text.substr(0, bytes_max);
  WordCount words;
  std::size_t at = 0;
  for (auto word = next_word(text, at); !word.whole.empty(); word = next_word(text, at))
    (word.is_plain ? words.plain : words.others) += 1;
  return words;
}

LineKind kind_of_line(std::string_view line) noexcept {
  while (!line.empty() && class_at(line.front()) == blank) line.remove_prefix(1);
  while (!line.empty() && class_at(line.back()) == blank) line.remove_suffix(1);
  if (line.empty()) return LineKind::neutral;
  if (std::any_of(prompts.begin(), prompts.end(),
                  [&](std::string_view prompt) { return line.starts_with(prompt); })) {
    return LineKind::printed;
  }
  WordCount words;
  bool is_sentence = (class_at(line.back()) & closer) != 0;
  std::size_t at = 0;
  for (auto word = next_word(line, at); !word.whole.empty(); word = next_word(line, at)) {
    // The level of a line of a log is its first word, or follows its time.
    if (words.plain == 0 && is_level(word.whole)) return LineKind::printed;
    (word.is_plain ? words.plain : words.others) += 1;
    is_sentence = is_sentence || (word.is_plain && is_function_word(word.bare));
  }
  const bool is_long = words.plain >= sentence_words_min;
  if (2 * words.others > words.plain)
    return is_markup(line) ? LineKind::neutral : LineKind::printed;
  // A sentence may be an item of a list, or a value of JSON.
  if (is_markup(line)) return is_long && is_sentence ? LineKind::prose : LineKind::neutral;
  if (words.plain < prose_words_min || (line.ends_with("...") && !is_long))
    return LineKind::neutral;
  return is_sentence || is_long ? LineKind::prose : LineKind::neutral;
}

bool MessageLines::next() noexcept {
  if (rest_.empty()) return false;
  line_ = rest_.substr(0, rest_.find('\n') + 1);  // all of it without one
  if (line_.empty()) line_ = rest_;
  rest_.remove_prefix(line_.size());
  const auto first = line_.find_first_not_of(" \t");
  const auto text = line_.substr(std::min(first, line_.size()));
  const bool fence = text.starts_with("```") || text.starts_with("~~~");
  fenced_ = open_ || fence;
  if (fence) open_ = !open_;
  kind_ = fenced_ ? LineKind::neutral : kind_of_line(line_);
  return true;
}

MessageShape shape_of(std::string_view text) noexcept {
  MessageShape shape;
  for (MessageLines lines(text.substr(0, looked_at_bytes)); lines.next();) {
    if (shape.prose + shape.printed >= decisive_bytes) break;
    if (lines.kind() == LineKind::prose) shape.prose += lines.line().size();
    if (lines.kind() != LineKind::printed) continue;
    shape.opens_printed |= shape.prose == 0;
    shape.printed += lines.line().size();
    ++shape.printed_lines;
  }
  return shape;
}

int hits_in_prose(std::string_view text, bool lines_once) noexcept {
  TextLoop loop;
  std::string_view before;
  for (MessageLines lines(text); lines.next();) {
    const auto line = std::exchange(before, lines.line());
    if (lines_once && line == lines.line()) continue;
    // As a row of a table: it separates the texts around it.
    if (lines.kind() == LineKind::printed) loop.feed("|");
    loop.feed(lines.line());
  }
  loop.feed("\n");
  return loop.hits();
}

}  // namespace watchdog
