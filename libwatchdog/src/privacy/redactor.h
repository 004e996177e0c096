/// \file
/// Secrets taken out of a text that comes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace watchdog {

/// As `redact` of the whole, for secrets of up to `look_ahead` bytes, whatever the pieces are. Use
/// from one thread at a time.
class Redactor {
 public:
  static constexpr std::size_t look_ahead = 8'192;
  /// Gets each secret, and the offset of its mask in the result.
  using TakenOut = std::function<void(std::uint64_t at, std::string_view secret)>;

  Redactor() = default;
  explicit Redactor(TakenOut taken_out) : taken_out_(std::move(taken_out)) {}

  /// Reads a piece; returns what is sure by now.
  [[nodiscard]] std::string feed(std::string_view piece);
  /// Gives what is left. Nothing may follow.
  [[nodiscard]] std::string rest();

 private:
  void append_masked(std::string& clean, std::size_t begin, std::size_t end);

  TakenOut taken_out_;
  std::uint64_t given_ = 0;  ///< Bytes of the result before the present piece.
  std::string held_;
  std::size_t next_scan_ = 2 * look_ahead;  ///< Bytes of `held_` from which on it is looked at.
};

}  // namespace watchdog
