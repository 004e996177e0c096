// Widths are counted in columns of the screen: escapes take no room. Where a row is too wide,
// the widest column that may be cut loses one character at a time, down to eight. Columns with
// colours must not be among these, because a cut could lose the escape that ends a colour. With
// `wrapped` one row that does not fit moves the last column of all rows below, so the table keeps
// one shape.
#include "terminal/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "privacy/content.h"
#include "terminal/columns.h"

namespace watchdog::monitor {
namespace {

/// The text, or its beginning and an ellipsis.
std::string cut(const std::string& text, std::size_t width_max) {
  return columns_of(text) <= width_max ? text
                                       : std::string(first_columns(text, width_max - 1)) + "…";
}

/// A column is cut to no less.
constexpr std::size_t cut_min = 8;
/// The width of the last column: the wanted one, enough to stay on its line, and the least.
constexpr std::size_t last_wanted = 40;
constexpr std::size_t last_room_min = 30;
constexpr std::size_t last_min = 10;

}  // namespace

std::vector<std::size_t> Table::widths(std::size_t width_max, bool last_below) const {
  std::vector<std::size_t> wide;
  for (const auto& row : rows_) {
    wide.resize(std::max(wide.size(), row.size()));
    for (std::size_t at = 0; at < row.size(); ++at)
      wide[at] = std::max(wide[at], columns_of(row[at]));
  }
  std::size_t all = std::min(wide.empty() ? 0 : wide.back(), last_wanted);
  if (last_below) all = 0;
  for (std::size_t at = 0; at + 1 < wide.size(); ++at) all += wide[at] + 2;
  if (last_below && all > 0) all -= 2;
  while (all > width_max) {
    const auto widest =
        std::ranges::max_element(may_be_cut_, {}, [&](std::size_t column) { return wide[column]; });
    if (widest == may_be_cut_.end() || wide[*widest] <= cut_min) break;
    --wide[*widest];
    --all;
  }
  return wide;
}

namespace {

/// The text in at most two lines, broken at a blank where there is one.
std::vector<std::string> in_two(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return {text};
  const auto most = first_columns(text, width).size();
  auto end = text.rfind(' ', most);
  if (end == std::string::npos || end < most / 2) end = most;
  const auto rest = text.find_first_not_of(' ', end);
  if (rest == std::string::npos) return {text.substr(0, end)};
  return {text.substr(0, end), cut(text.substr(rest), width)};
}

}  // namespace

std::vector<std::vector<std::string>> Table::lines(std::size_t width_max) const {
  auto wide = widths(width_max, false);
  bool below = false;
  if (last_ == Last::wrapped && !wide.empty()) {
    std::size_t all = wide.back();
    for (std::size_t at = 0; at + 1 < wide.size(); ++at) all += wide[at] + 2;
    below = all > width_max;
    if (below) wide = widths(width_max, true);
  }
  std::vector<std::vector<std::string>> lines;
  for (const auto& row : rows_) {
    auto& own = lines.emplace_back();
    if (row.empty()) continue;
    std::string line;
    std::size_t used = 0;
    for (std::size_t at = 0; at + 1 < row.size(); ++at) {
      const auto cell = cut(row[at], wide[at]);
      line += cell + std::string(wide[at] - columns_of(cell) + 2, ' ');
      used += wide[at] + 2;
    }
    const auto& last = row.back();
    const auto room = width_max > used ? width_max - used : 0;
    const auto fits = !below && (columns_of(last) <= room || last_ == Last::cut ||
                                 (last_ == Last::below && room >= last_room_min));
    if (fits) {
      own.push_back(line + cut(last, std::max(room, last_min)));
      continue;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    own.push_back(std::move(line));
    if (below && &row == &rows_.front()) continue;  // its heading would name nothing
    const auto width = std::max(width_max, last_min + 4) - 4;
    if (last_ == Last::below) {
      own.push_back("    " + cut(last, width));
    } else if (!last.empty()) {
      for (auto& part : in_two(last, width)) own.push_back("    " + part);
    }
  }
  return lines;
}

std::string Table::text(std::size_t width_max) const {
  std::string text;
  for (const auto& row : lines(width_max))
    for (const auto& line : row) text += line + '\n';
  return text;
}

bool colours_wanted() {
  const char* refused = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  return isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
}

std::string_view style_of(std::string_view word) {
  if (word == "progressing" || word == "completed") return "\x1b[32m";
  if (word == "stuck" || word == "looping" || word == "dead" || word == "failed")
    return "\x1b[1;31m";
  if (word == "slow" || word == "suspect" || word == "silent" || word == "incomplete")
    return "\x1b[33m";
  if (word == "needs_input") return "\x1b[1;33m";
  if (word == "blocked" || word == "waiting" || word == "your_turn") return "\x1b[34m";
  if (word == "idle" || word == "cancelled") return "\x1b[90m";
  return {};
}

std::string coloured(const std::string& word) {
  const auto style = colours_wanted() ? style_of(word) : std::string_view();
  return style.empty() ? word : std::string(style) + word + "\x1b[0m";
}

std::string emphasized(const std::string& line) {
  constexpr std::string_view plain = "\x1b[0m";
  constexpr std::string_view turned = "\x1b[7m";
  std::string text(turned);
  for (std::size_t from = 0; from < line.size();) {
    const auto to = std::min(line.find(plain, from), line.size());
    text += line.substr(from, to - from);
    if (to < line.size()) text.append(plain).append(turned);
    from = to < line.size() ? to + plain.size() : to;
  }
  return text.append(plain);
}

std::string clipped(const std::string& line, std::size_t width_max) {
  std::string text(first_columns(line, width_max));
  // Text beyond the edge is not visible, but colours end there too.
  for (auto at = line.find('\x1b', text.size()); at != std::string::npos;
       at = line.find('\x1b', at + 1))
    text += line.substr(at, line.find('m', at) - at + 1);
  return text;
}

std::size_t terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 100'000;
}

}  // namespace watchdog::monitor
