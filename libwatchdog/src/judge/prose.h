/// \file
/// Tells prose from what programs print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace watchdog {

/// The kind of one line of a message.
enum class LineKind : std::uint8_t {
  neutral,  ///< neither: it is empty, too short, Markdown, data, or a word or two
  prose,    ///< words that form a sentence
  printed   ///< what programs print: paths, numbers, levels of a log, prompts of a shell
};

/// Returns what a line looks like, without regard to the lines around it. Pure and linear.
[[nodiscard]] LineKind kind_of_line(std::string_view line) noexcept;

/// The words of a text by what they consist of.
struct WordCount {
  int plain = 0;   ///< Of letters, with punctuation around them.
  int others = 0;  ///< Paths, numbers, options, code.

  WordCount& operator+=(const WordCount& other) noexcept {
    plain += other.plain;
    others += other.others;
    return *this;
  }
};
/// Counts the words of a text, of its first 1 KiB.
[[nodiscard]] WordCount words_in(std::string_view text) noexcept;
/// Returns true for a request in words, as for a search or another agent: two plain words or more,
/// and at most a third as many others.
[[nodiscard]] constexpr bool asks_in_words(const WordCount& words) noexcept {
  return words.plain >= 2 && 3 * words.others <= words.plain;
}

/// Splits a message into lines, and knows which of them are in a code fence.
class MessageLines {
 public:
  explicit MessageLines(std::string_view text) noexcept : rest_(text) {}

  /// Goes to the next line. Returns false at the end.
  [[nodiscard]] bool next() noexcept;
  /// The line with its "\n", as far as it has one.
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  /// Its kind; lines of a code fence are neutral.
  [[nodiscard]] LineKind kind() const noexcept { return kind_; }
  /// Returns true in a code fence, the lines that open and close it included.
  [[nodiscard]] bool is_fenced() const noexcept { return fenced_; }

 private:
  std::string_view rest_;
  std::string_view line_;
  LineKind kind_ = LineKind::neutral;
  bool open_ = false;
  bool fenced_ = false;
};

/// The parts of the first 512 bytes of a message.
struct MessageShape {
  std::size_t prose = 0;       ///< Bytes of lines of prose.
  std::size_t printed = 0;     ///< Bytes of printed lines,
  int printed_lines = 0;       ///< and their number.
  bool opens_printed = false;  ///< The first line that is prose or printed is printed.

  /// Returns true if two thirds of what is prose or printed are printed, in `lines_min` lines or
  /// more.
  [[nodiscard]] bool is_printed(int lines_min) const noexcept {
    return printed_lines >= lines_min && printed >= 2 * prose;
  }
  /// Returns true if at least half of what is prose or printed is prose.
  [[nodiscard]] bool is_prose() const noexcept { return prose > 0 && prose >= printed; }
};
[[nodiscard]] MessageShape shape_of(std::string_view text) noexcept;

/// Returns how often the message begins to repeat itself. Printed lines are skipped as a table is.
/// With `lines_once`, equal lines that follow each other are read once: programs write those.
[[nodiscard]] int hits_in_prose(std::string_view text, bool lines_once) noexcept;

}  // namespace watchdog
