/// \file
/// Text in columns, with colours on a terminal.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/health.h"

namespace watchdog::monitor {

/// Rows of cells, printed with their columns aligned. If the rows are wider than the terminal, the
/// columns in `may_be_cut` are cut first. `Last` says what happens to the last column if its cell
/// still does not fit. `cut`: the cell is cut as well. `below`: a cell with little room has a line
/// of its own below its row. `wrapped`: if any row does not fit, the cell of each row has up to two
/// lines below it.
class Table {
 public:
  enum class Last : std::uint8_t { cut, below, wrapped };
  /// `may_be_cut` are columns without colours, by number.
  explicit Table(std::vector<std::string> heading, std::vector<std::size_t> may_be_cut = {},
                 Last last = Last::below)
      : rows_{std::move(heading)}, may_be_cut_(std::move(may_be_cut)), last_(last) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool is_empty() const noexcept { return rows_.size() == 1; }
  [[nodiscard]] std::string text(std::size_t width_max) const;
  /// The lines of each row, the heading first.
  [[nodiscard]] std::vector<std::vector<std::string>> lines(std::size_t width_max) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths(std::size_t width_max, bool last_below) const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> may_be_cut_;
  Last last_;
};

/// All that is ever sent to a terminal to change how text looks.
inline constexpr std::array<std::string_view, 8> own_styles{"\x1b[0m",    "\x1b[32m", "\x1b[1;31m",
                                                            "\x1b[33m",   "\x1b[34m", "\x1b[7m",
                                                            "\x1b[1;33m", "\x1b[90m"};

/// True if standard output is a terminal and NO_COLOR is not set (https://no-color.org).
[[nodiscard]] bool colours_wanted();
/// Returns the colour of a state, an outcome or a health; empty: it has none.
[[nodiscard]] std::string_view style_of(std::string_view word);
/// The word in the colour of its meaning, where colours are wanted.
[[nodiscard]] std::string coloured(const std::string& word);
/// The line turned to the background's colours, whatever colours it has itself.
[[nodiscard]] std::string emphasized(const std::string& line);
/// Returns the first characters as the terminal shows them.
[[nodiscard]] std::string clipped(const std::string& line, std::size_t width_max);
/// Columns of the terminal; a large number where there is none.
[[nodiscard]] std::size_t terminal_width();

}  // namespace watchdog::monitor
