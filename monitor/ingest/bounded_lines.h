/// \file
/// Reads a file line by line without taking more memory than the longest line that is allowed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Some programs begin a file in UTF-8 with it.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The lines of a file. Use from one thread at a time.
class BoundedLines {
 public:
  /// Errors: `not_found`.
  [[nodiscard]] static Result<BoundedLines> open(const std::filesystem::path& file);

  /// Sets `line` to the next line that is not blank, without its end. Returns false at the end of
  /// the file. Errors: `exhausted`: it has more than `bytes_max` bytes, and is passed over;
  /// `unavailable`: the file cannot be read.
  [[nodiscard]] Result<bool> next(std::string& line, std::size_t bytes_max);

  /// The number of the latest line, counted from 1; 0: none was read.
  [[nodiscard]] int number() const noexcept { return number_; }
  /// Bytes read so far.
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// The error with the file and the latest line before its message.
  [[nodiscard]] Error at_line(Error error) const;

 private:
  std::filesystem::path file_;
  std::ifstream stream_;
  int number_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace watchdog::monitor
