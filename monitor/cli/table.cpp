#include "cli/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "cli/endpoint.h"
#include "watchdog/content.h"

namespace watchdog::monitor {
namespace {

/// Characters shown: escapes for colours and the later bytes of a character take no room.
std::size_t width_of(const std::string& text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    if (!escape && (static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++width;
    if (escape && c == 'm') escape = false;
  }
  return width;
}

}  // namespace

std::string Table::text(std::size_t width_max) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t at = 0; at < row.size(); ++at)
      widths[at] = std::max(widths[at], width_of(row[at]));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::size_t used = 0;
    for (std::size_t at = 0; at + 1 < row.size(); ++at) {
      text += row[at] + std::string(widths[at] - width_of(row[at]) + 2, ' ');
      used += widths[at] + 2;
    }
    if (!row.empty()) {
      const auto room = width_max > used + 10 ? width_max - used : 10;
      text += width_of(row.back()) > room
                  ? std::string(first_characters(row.back(), room - 1)) + "…"
                  : row.back();
    }
    text += '\n';
  }
  return text;
}

bool colours_wanted() {
  return isatty(STDOUT_FILENO) == 1 && environment("NO_COLOR").empty();
}

std::string coloured(const std::string& word) {
  if (!colours_wanted()) return word;
  const auto in = [&](const char* code) {
    return std::string("\x1b[") + code + "m" + word + "\x1b[0m";
  };
  if (word == "progressing" || word == "completed") return in("32");
  if (word == "stuck" || word == "looping" || word == "dead" || word == "failed") return in("1;31");
  if (word == "slow" || word == "suspect" || word == "silent" || word == "incomplete")
    return in("33");
  if (word == "blocked") return in("34");
  return word;
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
  std::string text;
  std::size_t width = 0;
  bool escape = false;
  for (const char c : line) {
    if (c == '\x1b') escape = true;
    const bool begins = !escape && (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (begins) ++width;
    // What comes behind the edge is not seen, but colours end there too.
    if (escape || width <= width_max) text += c;
    if (escape && c == 'm') escape = false;
  }
  return text;
}

std::size_t terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 100'000;
}

std::string printable(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    safe += byte < 0x20 || byte == 0x7F ? (c == '\n' || c == '\t' ? ' ' : '?') : c;
  }
  return safe;
}

}  // namespace watchdog::monitor
