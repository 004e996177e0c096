/// \file
/// Finds tokens that repeat themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace watchdog {

/// Finds where a sequence of tokens begins to repeat itself, in constant memory. `TextLoop` makes
/// the tokens of a text, and its comment says what a hit is. Use from one thread at a time.
class TokenRepetition {
 public:
  static constexpr int period_max = 16;               ///< Tokens of a short unit.
  static constexpr int repeats_min = 4;               ///< Of a short unit.
  static constexpr int words_min = 12;                ///< In all repeats of a short unit.
  static constexpr int tokens_min = 400;              ///< In place of `words_min`.
  static constexpr std::size_t chunk_bytes = 50;      ///< Compared in long units.
  static constexpr int chunk_words_min = 4;           ///< In a chunk, else it is not compared.
  static constexpr int chunks_min = 10;               ///< Occurrences of a chunk.
  static constexpr std::size_t chunk_distance = 250;  ///< Bytes, on average.
  static constexpr int chunk_texts_max = 5;           ///< Different ones between the chunks.
  static constexpr std::size_t repeated_bytes_max = 64;

  TokenRepetition() noexcept { begin(); }
  /// Begins a new text.
  void begin() noexcept;

  /// The next byte of the text, as it is shown.
  void put(char c) noexcept { text_[text_bytes_++ % text_.size()] = c; }
  void put(std::string_view bytes) noexcept {
    auto at = text_bytes_;  // not a member: each byte written might change that
    for (const char c : bytes) text_[at++ % text_.size()] = c;
    text_bytes_ = at;
  }
  /// A token of which all bytes were put: its digest, their number, and how many halves of a word
  /// it counts for.
  void add(std::uint32_t token, std::uint8_t bytes, std::uint8_t half_words) noexcept;

  /// Returns the hits since the text began.
  [[nodiscard]] int hits() const noexcept { return hits_; }
  /// Returns the beginning of the repeated text of the newest hit; empty before the first. No
  /// character is cut. Valid until the next call of add() or begin().
  [[nodiscard]] std::string_view repeated() const noexcept {
    return {repeated_.data(), repeated_bytes_};
  }

 private:
  void extend_chunk(std::uint32_t token) noexcept;
  void forget_oldest() noexcept;
  [[nodiscard]] int short_unit() const noexcept;
  [[nodiscard]] int long_unit() noexcept;
  void hit(int unit) noexcept;
  void forget() noexcept;

  int hits_ = 0;
  std::size_t repeated_bytes_ = 0;

  std::size_t text_bytes_ = 0;  // ever put into text_
  std::size_t tokens_ = 0;      // since the latest hit
  int wordless_ = 0;            // tokens since the latest that has a letter
  std::size_t no_look_before_ = 0;

  // The latest 50 bytes as whole tokens: a polynomial over their digests.
  std::uint64_t chunk_ = 0;
  std::size_t chunk_tokens_ = 0;
  std::size_t chunk_size_ = 0;  // bytes
  int chunk_half_words_ = 0;

  // The latest tokens of 9 × 250 bytes.
  std::size_t window_oldest_ = 0;
  std::size_t window_size_ = 0;  // bytes

  static constexpr std::size_t latest = 64;  // tokens; more than a chunk has
  static constexpr std::size_t window = 768;
  std::array<char, repeated_bytes_max> repeated_{};
  std::array<char, 256> text_{};                    // ring
  std::array<std::uint32_t, 2 * latest> digest_{};  // ring, twice, so that any 64 are adjacent
  std::array<std::uint8_t, latest> half_words_{};   // ring
  std::array<std::int32_t, period_max> run_{};  // [16 - p]: tokens in a row like the one p before
  std::array<std::uint16_t, window> tag_{};  // ring: digest of the chunk that ends with it; 0: none
  std::array<std::uint8_t, window> bytes_{};  // ring
  std::array<std::uint8_t, 256> bucket_{};    // tags in the window by their upper half, modulo 256
};

}  // namespace watchdog
