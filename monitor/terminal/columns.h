/// \file
/// How much room a text takes on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Returns the columns that the text takes. A character of East Asian scripts and most emoji take
/// two. A character that combines with the one before it takes none, and so does an escape of
/// colour. Thread-safe; the locale of the program does not matter.
[[nodiscard]] std::size_t columns_of(std::string_view text);
/// Returns the longest beginning of the text that takes at most these columns. Thread-safe.
[[nodiscard]] std::string_view first_columns(std::string_view text, std::size_t columns_max);
/// Returns the line broken at blanks, so that no part takes more than these columns. Later parts
/// are indented four columns more than the first. A word that is wider stays whole, because people
/// copy addresses. Thread-safe.
[[nodiscard]] std::string broken_line(const std::string& line, std::size_t columns_max);

}  // namespace watchdog::monitor
