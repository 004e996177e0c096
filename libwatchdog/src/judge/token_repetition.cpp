// `add` extends two structures with each token. One has, for each period up to 16, the number of
// equal tokens in a row: it finds short units. The other is a window of digests of 50-byte chunks,
// with a table of how often each occurs: it finds long ones. A hit forgets all of it.
#include "judge/token_repetition.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace watchdog {
namespace {

// Digests are products with odd numbers; their upper halves are used.
constexpr std::uint64_t multiplier = 0x9e3779b97f4a7c15U;
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

/// [16 - p]: from how many tokens in a row like the one p before a short unit may be repeated.
constexpr auto due_from_runs(int tokens_least) {
  constexpr int period_max = TokenRepetition::period_max;
  std::array<std::int32_t, period_max> runs{};
  for (int period = 1; period <= period_max; ++period)
    runs[static_cast<std::size_t>(period_max - period)] =
        std::max(TokenRepetition::repeats_min * period, tokens_least) - period;
  return runs;
}
constexpr auto due_with_words = due_from_runs(TokenRepetition::words_min);
constexpr auto due_without_words = due_from_runs(TokenRepetition::tokens_min);

constexpr std::size_t bucket_of(std::uint16_t tag) noexcept {
  return tag >> 8U;
}
constexpr std::size_t tokens_between_looks = 16;  // a look costs as much as many tokens

/// Not the first byte of a character in UTF-8.
constexpr bool is_continuation(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

}  // namespace

void TokenRepetition::begin() noexcept {
  hits_ = 0;
  repeated_bytes_ = 0;
  text_bytes_ = 0;
  forget();
}

void TokenRepetition::add(std::uint32_t token, std::uint8_t bytes,
                          std::uint8_t half_words) noexcept {
  token = std::max<std::uint32_t>(token, 1);  // 0: none yet
  const std::size_t at = tokens_ % latest;

  wordless_ = half_words == 0 ? wordless_ + 1 : 0;
  const auto& due_from = wordless_ < period_max ? due_with_words : due_without_words;
  // Without branches and with copies, so that compilers compare several periods at once.
  std::array<std::uint32_t, period_max> before;
  std::memcpy(before.data(), &digest_[(tokens_ + latest - period_max) % latest], sizeof before);
  auto runs = run_;
  std::int32_t due = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i] = before[i] == token ? runs[i] + 1 : 0;
    due |= runs[i] >= due_from[i] ? -1 : 0;
  }
  run_ = runs;
  digest_[at] = digest_[at + latest] = token;
  half_words_[at] = half_words;

  if (tokens_ - window_oldest_ == window) forget_oldest();
  bytes_[tokens_ % window] = bytes;
  window_size_ += bytes;
  while (window_size_ - bytes_[window_oldest_ % window] > (chunks_min - 1) * chunk_distance)
    forget_oldest();
  extend_chunk(token);
  const auto tag =
      std::max<std::uint16_t>(static_cast<std::uint16_t>((chunk_ * multiplier) >> 48U), 1);
  tag_[tokens_ % window] = tag;
  const int alike = ++bucket_[bucket_of(tag)];

  int unit = due != 0 ? short_unit() : 0;
  if (unit == 0 && alike >= chunks_min) unit = long_unit();
  if (unit != 0)
    hit(unit);
  else
    ++tokens_;
}

void TokenRepetition::extend_chunk(std::uint32_t token) noexcept {
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

void TokenRepetition::forget_oldest() noexcept {
  const std::size_t at = window_oldest_++ % window;
  window_size_ -= bytes_[at];
  --bucket_[bucket_of(tag_[at])];
  tag_[at] = 0;
}

// Tokens of the unit that the text ends in; 0: it is not repeated often enough.
int TokenRepetition::short_unit() const noexcept {
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
int TokenRepetition::long_unit() noexcept {
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
    texts[found] = (texts[found] ^ tag_[i % window]) * static_cast<std::uint32_t>(multiplier);
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

void TokenRepetition::hit(int unit) noexcept {
  if (hits_ < std::numeric_limits<int>::max()) ++hits_;
  std::size_t unit_bytes = 0;
  for (std::size_t i = tokens_; unit > 0; --unit) unit_bytes += bytes_[i-- % window];
  std::size_t from = text_bytes_ - std::min(unit_bytes, text_.size());
  const auto text_at = [&](std::size_t i) { return text_[i % text_.size()]; };
  // Half a character has at most three such bytes; more are broken and shown.
  for (int i = 0; i < 3 && unit_bytes > text_.size() && is_continuation(text_at(from)); ++i) ++from;
  while (text_at(from) == ' ') ++from;
  repeated_bytes_ = std::min(text_bytes_ - from, repeated_.size());
  for (std::size_t i = 0; i < repeated_bytes_; ++i) repeated_[i] = text_at(from + i);
  const std::size_t end = from + repeated_bytes_;
  for (std::size_t i = 0; i < 3 && end < text_bytes_ && is_continuation(text_at(end - i)); ++i)
    --repeated_bytes_;
  forget();
}

void TokenRepetition::forget() noexcept {
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

}  // namespace watchdog
