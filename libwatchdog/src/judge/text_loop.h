/// \file
/// Finds text that repeats itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "judge/token_repetition.h"

namespace watchdog {

/// Finds where a model's text begins to repeat itself, while the text arrives in pieces.
///
/// A hit is one of
///  * a short unit: the text ends in a unit of at most 16 tokens, 4 times or more, with 12 words in
///    all, or, of any kind, 400 tokens;
///  * a long one: the latest 50 bytes (of 4 words or more) occur 10 times within 9 × 250 bytes, and
///    of the 9 texts between them at most 5 differ. A list of different items that begin alike is
///    not a hit.
///
/// Tokens are words (ASCII letters and digits and characters of two bytes, ASCII case folded),
/// single punctuation characters and symbols, and single characters of scripts in three bytes.
/// White space separates tokens. Only tokens with a letter count as words, so dots, dividers, rows
/// of numbers and punctuation art must be very long to hit. A character of three bytes counts as
/// half a word. Every 100 bytes of a longer word are a word, so "hahaha" hits after 1,200 bytes.
/// "Line 1" and "line 2" differ.
///
/// Code fences, tables, lists, headings, quotes and dividers (Markdown, also indented) are not
/// text: repetition in them is not a hit. But they separate two pieces of text, unless the same
/// ones are there every time. A line outside a fence is skipped for 1 KiB only.
///
/// After a hit everything starts again: the second hit needs as much text.
///
/// The sizes of the fragments do not matter, not even within a character. Any bytes are allowed.
/// Linear in the text, in constant memory. Use from one thread at a time.
class TextLoop {
 public:
  static constexpr std::size_t word_bytes_max = 100;      ///< The next bytes are another word.
  static constexpr std::size_t skipped_bytes_max = 1024;  ///< Of a line; the rest is text.

  TextLoop() noexcept { begin(); }

  /// Reads the next piece of the text; returns the number of hits that it completed. A word is
  /// complete when another byte follows, so end a text with "\n".
  int feed(std::string_view fragment) noexcept;

  /// Returns the hits since the text began.
  [[nodiscard]] int hits() const noexcept { return repetition_.hits(); }

  /// Returns the beginning of the repeated text of the newest hit, at most 64 bytes, white space as
  /// one blank and skipped lines as "…"; empty before the first. Original bytes, secrets included;
  /// no character is cut. Valid until the next call of feed() or begin().
  [[nodiscard]] std::string_view repeated() const noexcept { return repetition_.repeated(); }

  /// Begins a new text.
  void begin() noexcept;

 private:
  enum class Mode : std::uint8_t {
    line_start,  // the kind of the line is not known yet
    text,
    skipped,      // the rest of a line
    fence_info,   // after an opening fence
    fence_start,  // of a line within a fence
    fenced        // the rest of such a line
  };
  enum class Token : std::uint8_t { none, word, character, mark };

  // Which bytes are text.
  void start_line() noexcept;
  void feed_line_start(char c) noexcept;
  void feed_after_digits(char c) noexcept;
  void feed_after_marks(char c) noexcept;
  void begin_item(char c) noexcept;
  void leave_line_start(char c) noexcept;
  void start_fenced_line() noexcept;
  void feed_fence_start(char c) noexcept;
  const char* feed_skipped(const char* at, const char* end) noexcept;
  void skip(char c) noexcept;
  void skip_held() noexcept;
  const char* feed_text(const char* at, const char* end) noexcept;

  // Which tokens the text consists of.
  const char* feed_word(const char* at, const char* end) noexcept;
  void begin_token(Token kind) noexcept;
  void extend_token(char c) noexcept;
  void end_token() noexcept;
  // The line so far, where it may still become any kind of line: `held_count_` times `mark_`, or
  // digits.
  Mode mode_ = Mode::line_start;
  bool in_item_ = false;    // after the marker of a list or a quote, where a fence may begin
  bool delimited_ = false;  // "1." or "1)"
  bool gap_ = false;        // a blank after the marks
  char mark_ = 0;
  char fence_mark_ = 0;
  std::uint32_t fence_count_ = 0;
  std::uint32_t held_count_ = 0;
  std::size_t line_skipped_ = 0;
  std::uint64_t block_ = 0;  // digest of the skipped lines since the latest token; 0: none

  Token kind_ = Token::none;
  bool spaced_ = false;  // white space before the next token
  bool letters_ = false;
  std::uint8_t token_bytes_ = 0;
  std::uint64_t token_ = 0;  // its digest so far

  std::array<char, 10> held_digits_{};

  TokenRepetition repetition_;
};
static_assert(sizeof(TextLoop) <= 4096);

/// Returns the hits in a whole text.
[[nodiscard]] int hits_in(std::string_view text) noexcept;
[[nodiscard]] inline bool repeats_itself(std::string_view text) noexcept {
  return hits_in(text) > 0;
}

}  // namespace watchdog
