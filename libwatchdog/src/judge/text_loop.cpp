// Finds repeated text in three stages. The first decides which bytes are text (the header's
// rules for Markdown). The second splits them into tokens and digests each. The third keeps two
// structures of constant size. One has, for each period up to 16, the number of equal tokens in a
// row. The other is a window of digests of 50-byte chunks, with a table of their occurrences.
#include "judge/text_loop.h"

#include <algorithm>
#include <limits>

namespace watchdog {
namespace {

// Digests are products with odd numbers; their upper halves are used.
constexpr std::uint64_t basis = 0xcbf29ce484222325U;
constexpr std::uint64_t prime = 0x9e3779b97f4a7c15U;
constexpr std::uint64_t factor = 0xd1342543de82ef95U;

constexpr auto factor_powers = [] {
  std::array<std::uint64_t, 64> powers{};
  std::uint64_t power = 1;
  for (auto& entry : powers) {
    entry = power;
    power *= factor;
  }
  return powers;
}();

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
constexpr bool continues_character(char c) noexcept {
  return kind_of[byte_of(c)] == Kind::more;
}

constexpr std::uint64_t mixed(std::uint64_t digest, std::uint8_t byte) noexcept {
  return (digest ^ byte) * prime;
}

constexpr std::string_view line_marks = "-*+_=#`~";
constexpr std::string_view bullets = "-*+";
constexpr char number = '0';  // mark_ of a line that begins with digits
constexpr std::size_t digits_max = 9;
constexpr std::string_view block_shown = " …";
constexpr std::size_t bucket_of(std::uint16_t tag) noexcept {
  return tag >> 8U;
}
constexpr std::size_t tokens_between_looks = 16;  // a look costs as much as many tokens

}  // namespace

void TextLoop::begin() noexcept {
  hits_ = 0;
  repeated_bytes_ = 0;
  text_bytes_ = 0;
  block_ = 0;
  kind_ = Token::none;
  forget();
  start_line();
}

int TextLoop::feed(std::string_view fragment) noexcept {
  const int before = hits_;
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
  return hits_ - before;
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
        if (kind_ != Token::word || token_bytes_ >= word_bytes_max) begin_token(Token::word);
        letters_ |= kind_of[byte_of(c)] == Kind::letter;
        extend_token(c);
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

void TextLoop::begin_token(Token kind) noexcept {
  end_token();
  if (block_ != 0) {
    // Skipped text separates its neighbours, unless it is the same every time.
    for (const char c : block_shown) put(c);
    add(static_cast<std::uint32_t>(block_ >> 32U), block_shown.size(), 0);
    block_ = 0;
  }
  kind_ = kind;
  token_ = basis;
  letters_ = false;
  token_bytes_ = 0;
  if (spaced_) {
    put(' ');
    token_bytes_ = 1;
    spaced_ = false;
  }
}

void TextLoop::extend_token(char c) noexcept {
  token_ = mixed(token_, folded[byte_of(c)]);
  if (token_bytes_ == std::numeric_limits<std::uint8_t>::max()) return;  // only of broken UTF-8
  ++token_bytes_;
  put(c);
}

void TextLoop::end_token() noexcept {
  if (kind_ == Token::none) return;
  const auto half_words = kind_ == Token::character ? 1 : kind_ == Token::word && letters_ ? 2 : 0;
  kind_ = Token::none;
  add(static_cast<std::uint32_t>(token_ >> 32U), token_bytes_,
      static_cast<std::uint8_t>(half_words));
}

// ---- Whether they are repeated.

void TextLoop::add(std::uint32_t token, std::uint8_t bytes, std::uint8_t half_words) noexcept {
  token = std::max<std::uint32_t>(token, 1);  // 0: none yet
  const std::size_t at = tokens_ % latest;

  wordless_ = half_words == 0 ? wordless_ + 1 : 0;
  const int least = wordless_ < period_max ? words_min : tokens_min;
  const std::uint32_t* before = &digest_[(tokens_ + latest - period_max) % latest];
  int due = 0;
  for (int i = 0; i < period_max; ++i) {
    const int period = period_max - i;
    run_[i] = before[i] == token ? run_[i] + 1 : 0;
    due |= run_[i] + period >= std::max(repeats_min * period, least) ? 1 : 0;
  }
  digest_[at] = digest_[at + latest] = token;
  half_words_[at] = half_words;

  if (tokens_ - window_oldest_ == window) forget_oldest();
  bytes_[tokens_ % window] = bytes;
  window_size_ += bytes;
  while (window_size_ - bytes_[window_oldest_ % window] > (chunks_min - 1) * chunk_distance)
    forget_oldest();
  extend_chunk(token);
  const auto tag = std::max<std::uint16_t>(static_cast<std::uint16_t>((chunk_ * prime) >> 48U), 1);
  tag_[tokens_ % window] = tag;
  const int alike = ++bucket_[bucket_of(tag)];

  int unit = due != 0 ? short_unit() : 0;
  if (unit == 0 && alike >= chunks_min) unit = long_unit();
  if (unit != 0)
    hit(unit);
  else
    ++tokens_;
}

void TextLoop::extend_chunk(std::uint32_t token) noexcept {
  chunk_ = chunk_ * factor + token;
  ++chunk_tokens_;
  chunk_size_ += bytes_[tokens_ % window];
  chunk_half_words_ += half_words_[tokens_ % latest];
  for (;;) {
    const std::size_t oldest = tokens_ + 1 - chunk_tokens_;
    const std::uint8_t bytes = bytes_[oldest % window];
    if (chunk_size_ - bytes < chunk_bytes) return;
    --chunk_tokens_;
    chunk_ -= digest_[oldest % latest] * factor_powers[chunk_tokens_];
    chunk_size_ -= bytes;
    chunk_half_words_ -= half_words_[oldest % latest];
  }
}

void TextLoop::forget_oldest() noexcept {
  const std::size_t at = window_oldest_++ % window;
  window_size_ -= bytes_[at];
  --bucket_[bucket_of(tag_[at])];
  tag_[at] = 0;
}

// Tokens of the unit that the text ends in; 0: it is not repeated often enough.
int TextLoop::short_unit() const noexcept {
  int half_words = 0;  // of the unit
  for (int period = 1; period <= period_max; ++period) {
    half_words += half_words_[(tokens_ + 1 - static_cast<std::size_t>(period)) % latest];
    const int tokens = run_[period_max - period] + period;
    if (tokens < repeats_min * period) continue;
    if (tokens >= tokens_min || half_words * tokens >= 2 * words_min * period) return period;
  }
  return 0;
}

// Tokens from the chunk's occurrence before to its newest; 0: it does not stand there often enough.
int TextLoop::long_unit() noexcept {
  if (tokens_ < no_look_before_ || chunk_size_ < chunk_bytes ||
      chunk_half_words_ < 2 * chunk_words_min)
    return 0;
  const std::uint16_t chunk = tag_[tokens_ % window];
  const std::uint8_t bytes = bytes_[tokens_ % window];
  if (std::count(tag_.begin(), tag_.end(), chunk) < chunks_min) return 0;
  std::array<std::uint32_t, chunks_min - 1> texts{};  // digests of those between, newest first
  std::size_t found = 0;
  std::size_t unit = 0;
  for (std::size_t i = tokens_; i > window_oldest_ && found < texts.size();) {
    texts[found] = (texts[found] ^ tag_[i % window]) * static_cast<std::uint32_t>(prime);
    --i;
    // Another chunk of the same tag, by chance, lets what is repeated hit some repeats earlier.
    if (tag_[i % window] != chunk || bytes_[i % window] != bytes) continue;
    if (found++ == 0) unit = tokens_ - i;
  }
  std::sort(texts.begin(), texts.end());
  const auto different = std::unique(texts.begin(), texts.end()) - texts.begin();
  if (found == texts.size() && different <= chunk_texts_max) return static_cast<int>(unit);
  no_look_before_ = tokens_ + tokens_between_looks;
  return 0;
}

void TextLoop::hit(int unit) noexcept {
  if (hits_ < std::numeric_limits<int>::max()) ++hits_;
  std::size_t unit_bytes = 0;
  for (std::size_t i = tokens_; unit > 0; --unit) unit_bytes += bytes_[i-- % window];
  std::size_t from = text_bytes_ - std::min(unit_bytes, text_.size());
  const auto text_at = [&](std::size_t i) { return text_[i % text_.size()]; };
  // Half a character has at most three such bytes; more are broken and shown.
  for (int i = 0; i < 3 && unit_bytes > text_.size() && continues_character(text_at(from)); ++i)
    ++from;
  while (text_at(from) == ' ') ++from;
  repeated_bytes_ = std::min(text_bytes_ - from, repeated_.size());
  for (std::size_t i = 0; i < repeated_bytes_; ++i) repeated_[i] = text_at(from + i);
  const std::size_t end = from + repeated_bytes_;
  for (std::size_t i = 0; i < 3 && end < text_bytes_ && continues_character(text_at(end - i)); ++i)
    --repeated_bytes_;
  forget();
}

void TextLoop::forget() noexcept {
  tokens_ = 0;
  wordless_ = 0;
  no_look_before_ = 0;
  chunk_ = 0;
  chunk_tokens_ = chunk_size_ = 0;
  chunk_half_words_ = 0;
  window_oldest_ = window_size_ = 0;
  digest_.fill(0);
  run_.fill(0);
  tag_.fill(0);
  bucket_.fill(0);
}

int hits_in(std::string_view text) noexcept {
  TextLoop loop;
  loop.feed(text);
  loop.feed("\n");
  return loop.hits();
}

}  // namespace watchdog
