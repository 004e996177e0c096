/// \file
/// Secrets taken out of a text that comes in pieces.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// As `redact` of the whole, for secrets of up to `look_ahead` bytes, whatever the pieces are. Use
/// from one thread at a time.
class Redactor {
 public:
  static constexpr std::size_t look_ahead = 8'192;

  /// Reads a piece; returns what is sure by now.
  [[nodiscard]] std::string feed(std::string_view piece);
  /// Gives what is left. Nothing may follow.
  [[nodiscard]] std::string rest();

 private:
  std::string held_;
};

}  // namespace watchdog
