// Finds repeated text in three stages. The first decides which bytes are text (the header's
// rules for Markdown). The second splits them into tokens and digests each. The third is
// `TokenRepetition`.
#include "judge/text_loop.h"

#include <algorithm>
#include <limits>

namespace watchdog {
namespace {

// Digests are products with odd numbers; their upper halves are used.
constexpr std::uint64_t basis = 0xcbf29ce484222325U;
constexpr std::uint64_t prime = 0x9e3779b97f4a7c15U;

enum class Kind : std::uint8_t { space, mark, digit, letter, more, character, symbol };

// Classes of characters by their first byte: E2, EF and F0.. begin punctuation, arrows, boxes, full
// width forms and emoji; the other three-byte ones mostly scripts without spaces.
struct FirstByte {
  std::uint8_t from;  // to the next entry's
  Kind kind;
};
constexpr std::array first_bytes{
    FirstByte{0, Kind::space},     FirstByte{' ' + 1, Kind::mark},
    FirstByte{'0', Kind::digit},   FirstByte{'9' + 1, Kind::mark},
    FirstByte{'A', Kind::letter},  FirstByte{'Z' + 1, Kind::mark},
    FirstByte{'a', Kind::letter},  FirstByte{'z' + 1, Kind::mark},
    FirstByte{0x7f, Kind::space},  FirstByte{0x80, Kind::more},
    FirstByte{0xc0, Kind::letter}, FirstByte{0xe0, Kind::character},
    FirstByte{0xe2, Kind::symbol}, FirstByte{0xe3, Kind::character},
    FirstByte{0xef, Kind::symbol},
};

constexpr auto kind_of = [] {
  std::array<Kind, 256> kinds{};
  for (const auto& [from, kind] : first_bytes)
    for (std::size_t c = from; c < kinds.size(); ++c) kinds[c] = kind;
  return kinds;
}();

constexpr auto folded = [] {
  std::array<std::uint8_t, 256> bytes{};
  for (unsigned c = 0; c < 256; ++c)
    bytes[c] = static_cast<std::uint8_t>(c >= 'A' && c <= 'Z' ? c | 0x20U : c);
  return bytes;
}();

constexpr std::uint8_t byte_of(char c) noexcept {
  return static_cast<std::uint8_t>(c);
}
constexpr bool is_space_byte(char c) noexcept {
  return kind_of[byte_of(c)] == Kind::space;
}
constexpr bool is_digit_byte(char c) noexcept {
  return kind_of[byte_of(c)] == Kind::digit;
}

constexpr std::uint64_t mixed(std::uint64_t digest, std::uint8_t byte) noexcept {
  return (digest ^ byte) * prime;
}

constexpr std::string_view line_marks = "-*+_=#`~";
constexpr std::string_view bullets = "-*+";
constexpr char number = '0';  // mark_ of a line that begins with digits
constexpr std::size_t digits_max = 9;
constexpr std::string_view block_shown = " …";
}  // namespace

void TextLoop::begin() noexcept {
  repetition_.begin();
  block_ = 0;
  kind_ = Token::none;
  start_line();
}

int TextLoop::feed(std::string_view fragment) noexcept {
  const int before = hits();
  const char* at = fragment.data();
  const char* const end = at + fragment.size();
  while (at != end) {
    switch (mode_) {
      case Mode::text:
        at = feed_text(at, end);
        break;
      case Mode::line_start:
        feed_line_start(*at++);
        break;
      case Mode::fence_start:
        feed_fence_start(*at++);
        break;
      case Mode::skipped:
      case Mode::fence_info:
      case Mode::fenced:
        at = feed_skipped(at, end);
        break;
    }
  }
  return hits() - before;
}

// ---- Which bytes are text.

void TextLoop::start_line() noexcept {
  mode_ = Mode::line_start;
  in_item_ = delimited_ = gap_ = false;
  mark_ = 0;
  held_count_ = 0;
  line_skipped_ = 0;
  spaced_ = true;
}

void TextLoop::feed_line_start(char c) noexcept {
  if (mark_ == number) {
    feed_after_digits(c);
  } else if (mark_ != 0) {
    feed_after_marks(c);
  } else if (c == '\n') {
    start_line();
  } else if (c == '>') {
    begin_item(c);
  } else if (c == '|') {
    mode_ = Mode::skipped;
    skip(c);
  } else if (is_digit_byte(c)) {
    mark_ = number;
    held_digits_[held_count_++] = c;
  } else if (line_marks.find(c) != std::string_view::npos) {
    mark_ = c;
    held_count_ = 1;
  } else if (!is_space_byte(c)) {
    leave_line_start(c);
  }
}

void TextLoop::feed_after_digits(char c) noexcept {
  const bool delimiter = c == '.' || c == ')';
  if (delimited_ && is_space_byte(c)) {
    begin_item(c);
  } else if (!delimited_ && (delimiter || (is_digit_byte(c) && held_count_ < digits_max))) {
    delimited_ = delimiter;
    held_digits_[held_count_++] = c;
  } else {
    leave_line_start(c);
  }
}

void TextLoop::feed_after_marks(char c) noexcept {
  const bool blank = is_space_byte(c);
  const bool three = held_count_ >= 3;
  const bool fence = three && (mark_ == '`' || mark_ == '~');
  const bool heading = held_count_ <= 6 && mark_ == '#' && blank;
  const bool bullet = held_count_ == 1 && bullets.find(mark_) != std::string_view::npos && blank;
  if (c == mark_ && held_count_ < skipped_bytes_max) {
    ++held_count_;
  } else if (fence || heading) {
    skip_held();
    fence_mark_ = mark_;
    fence_count_ = held_count_;
    mode_ = fence ? Mode::fence_info : Mode::skipped;
    feed_skipped(&c, &c + 1);
  } else if (bullet) {
    begin_item(c);
  } else if (three && c == '\n') {  // a divider
    skip_held();
    skip(c);
    start_line();
  } else if (three && blank) {
    gap_ = true;
  } else {
    leave_line_start(c);
  }
}

void TextLoop::begin_item(char c) noexcept {
  skip_held();
  skip(c);
  mark_ = 0;
  held_count_ = 0;
  delimited_ = false;
  in_item_ = true;
  if (c == '\n') start_line();
}

void TextLoop::leave_line_start(char c) noexcept {
  if (in_item_) {
    skip_held();
    mode_ = Mode::skipped;
    feed_skipped(&c, &c + 1);
    return;
  }
  mode_ = Mode::text;
  if (mark_ == number) {
    feed_text(held_digits_.data(), held_digits_.data() + held_count_);
  } else {
    for (const char mark = mark_; held_count_ > 0; --held_count_) feed_text(&mark, &mark + 1);
  }
  spaced_ |= gap_;
  feed_text(&c, &c + 1);
}

void TextLoop::skip(char c) noexcept {
  block_ = mixed(block_ == 0 ? basis : block_, byte_of(c));
}

void TextLoop::skip_held() noexcept {
  for (std::uint32_t i = 0; i < held_count_; ++i) skip(mark_ == number ? held_digits_[i] : mark_);
}

const char* TextLoop::feed_skipped(const char* at, const char* end) noexcept {
  while (at != end) {
    const char c = *at++;
    skip(c);
    if (c == '\n') {
      if (mode_ == Mode::skipped)
        start_line();
      else
        start_fenced_line();
      return at;
    }
    // ```so``` is not a fence.
    if (mode_ == Mode::fence_info && c == '`' && fence_mark_ == '`') mode_ = Mode::skipped;
    if (mode_ == Mode::skipped && ++line_skipped_ == skipped_bytes_max) {
      mode_ = Mode::text;
      return at;
    }
  }
  return at;
}

void TextLoop::start_fenced_line() noexcept {
  mode_ = Mode::fence_start;
  held_count_ = 0;
  gap_ = false;
}

void TextLoop::feed_fence_start(char c) noexcept {
  skip(c);
  if (c == '\n') {
    if (held_count_ >= fence_count_)
      start_line();
    else
      start_fenced_line();
  } else if (is_space_byte(c) || (c == '>' && held_count_ == 0)) {
    gap_ = held_count_ > 0;
  } else if (c == fence_mark_ && !gap_) {
    held_count_ = std::min(held_count_ + 1, fence_count_);  // more close it as well
  } else {
    mode_ = Mode::fenced;
  }
}

// ---- Which tokens the text consists of.

const char* TextLoop::feed_text(const char* at, const char* end) noexcept {
  for (; at != end; ++at) {
    const char c = *at;
    switch (kind_of[byte_of(c)]) {
      case Kind::space:
        end_token();
        spaced_ = true;
        if (c == '\n') {
          start_line();
          return at + 1;
        }
        break;
      case Kind::letter:
      case Kind::digit:
        at = feed_word(at, end) - 1;
        break;
      case Kind::more:
        if (kind_ == Token::none) begin_token(Token::mark);
        extend_token(c);
        break;
      case Kind::character:
        begin_token(Token::character);
        extend_token(c);
        break;
      case Kind::symbol:
        begin_token(Token::mark);
        extend_token(c);
        break;
      case Kind::mark:
        begin_token(Token::mark);
        extend_token(c);
        end_token();
        break;
    }
  }
  return at;
}

/// Reads the letters and digits that follow, which are most of a text, in one go.
const char* TextLoop::feed_word(const char* at, const char* end) noexcept {
  if (kind_ != Token::word || token_bytes_ >= word_bytes_max) begin_token(Token::word);
  const char* const from = at;
  const char* const last = at + std::min<std::ptrdiff_t>(end - at, word_bytes_max - token_bytes_);
  auto token = token_;
  bool letters = letters_;
  for (; at != last; ++at) {
    const auto kind = kind_of[byte_of(*at)];
    if (kind != Kind::letter && kind != Kind::digit) break;
    letters |= kind == Kind::letter;
    token = mixed(token, folded[byte_of(*at)]);
  }
  token_ = token;
  letters_ = letters;
  token_bytes_ = static_cast<std::uint8_t>(token_bytes_ + (at - from));
  repetition_.put({from, at});
  return at;
}

void TextLoop::begin_token(Token kind) noexcept {
  end_token();
  if (block_ != 0) {
    // Skipped text separates its neighbours, unless it is the same every time.
    for (const char c : block_shown) repetition_.put(c);
    repetition_.add(static_cast<std::uint32_t>(block_ >> 32U), block_shown.size(), 0);
    block_ = 0;
  }
  kind_ = kind;
  token_ = basis;
  letters_ = false;
  token_bytes_ = 0;
  if (spaced_) {
    repetition_.put(' ');
    token_bytes_ = 1;
    spaced_ = false;
  }
}

void TextLoop::extend_token(char c) noexcept {
  token_ = mixed(token_, folded[byte_of(c)]);
  if (token_bytes_ == std::numeric_limits<std::uint8_t>::max()) return;  // only of broken UTF-8
  ++token_bytes_;
  repetition_.put(c);
}

void TextLoop::end_token() noexcept {
  if (kind_ == Token::none) return;
  const auto half_words = kind_ == Token::character ? 1 : kind_ == Token::word && letters_ ? 2 : 0;
  kind_ = Token::none;
  repetition_.add(static_cast<std::uint32_t>(token_ >> 32U), token_bytes_,
                  static_cast<std::uint8_t>(half_words));
}

int hits_in(std::string_view text) noexcept {
  TextLoop loop;
  loop.feed(text);
  loop.feed("\n");
  return loop.hits();
}

}  // namespace watchdog
