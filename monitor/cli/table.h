/// \file
/// Text in columns, and colours where somebody can see them.
#pragma once

#include <string>
#include <vector>

#include "watchdog/health.h"

namespace watchdog::monitor {

/// Rows of cells, printed with their columns aligned. The last column is cut to the terminal's
/// width.
class Table {
 public:
  explicit Table(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text(std::size_t width_max) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// True if standard output is a terminal and NO_COLOR is not set (https://no-color.org).
[[nodiscard]] bool colours_wanted();
/// The word in the colour of its meaning, where colours are wanted.
[[nodiscard]] std::string coloured(const std::string& word);
/// The line turned to the background's colours, whatever colours it has itself.
[[nodiscard]] std::string emphasized(const std::string& line);
/// The first so many characters as the terminal shows them.
[[nodiscard]] std::string clipped(const std::string& line, std::size_t width_max);
/// Columns of the terminal; a large number where there is none.
[[nodiscard]] std::size_t terminal_width();
/// Control characters made visible: what agents say must not steer the terminal.
[[nodiscard]] std::string printable(const std::string& text);

}  // namespace watchdog::monitor
