#include "watchdog/terminal_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

#include "text/utf8.h"

namespace watchdog {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

/// Unicode's control (Cc) and format (Cf) characters, line and paragraph separators, fillers, and
/// the plane of tags and further variation selectors. Variation selectors 1 to 16 are not here:
/// they belong to ordinary emoji.
constexpr std::array unsafe{
    Range{0x0000, 0x0008},   Range{0x000B, 0x001F},   Range{0x007F, 0x009F},
    Range{0x00AD, 0x00AD},   Range{0x034F, 0x034F},   Range{0x0600, 0x0605},
    Range{0x061C, 0x061C},   Range{0x06DD, 0x06DD},   Range{0x070F, 0x070F},
    Range{0x0890, 0x0891},   Range{0x08E2, 0x08E2},   Range{0x115F, 0x1160},
    Range{0x17B4, 0x17B5},   Range{0x180B, 0x180F},   Range{0x200B, 0x200F},
    Range{0x2028, 0x202E},   Range{0x2060, 0x206F},   Range{0x3164, 0x3164},
    Range{0xFEFF, 0xFEFF},   Range{0xFFA0, 0xFFA0},   Range{0xFFF0, 0xFFFB},
    Range{0x110BD, 0x110BD}, Range{0x110CD, 0x110CD}, Range{0x13430, 0x1345F},
    Range{0x1BCA0, 0x1BCA3}, Range{0x1D173, 0x1D17A}, Range{0xE0000, 0xE0FFF}};

bool is_unsafe(std::uint32_t point) {
  const auto range = std::ranges::lower_bound(unsafe, point, {}, &Range::last);
  return range != unsafe.end() && point >= range->first;
}

/// REQUIRES: `bytes` are one character.
std::uint32_t code_point(std::string_view bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  if (bytes.size() == 1) return byte(0);
  std::uint32_t point = byte(0) & (0xFFU >> (bytes.size() + 1));
  for (std::size_t at = 1; at < bytes.size(); ++at) point = (point << 6U) | (byte(at) & 0x3FU);
  return point;
}

std::string formatted(const char* format, unsigned number) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

/// Copies the text; `instead` gives what stands for an unsafe character, or for a stray byte.
template <class Instead>
std::string replaced(std::string_view text, const Instead& instead) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const auto bytes = character_bytes(text);
    const auto character = text.substr(0, std::max<std::size_t>(bytes, 1));
    const auto point = code_point(character);
    if (bytes == 0 || is_unsafe(point)) {
      safe += instead(point, bytes == 0);
    } else {
      safe += character;
    }
    text.remove_prefix(character.size());
  }
  return safe;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  return replaced(text, [](std::uint32_t point, bool stray) {
    return stray ? formatted("<%02X>", point) : formatted("<U+%04X>", point);
  });
}

std::string terminal_line(std::string_view text) {
  auto line = terminal_text(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

std::string terminal_json(std::string_view json) {
  return replaced(json, [](std::uint32_t point, bool stray) -> std::string {
    if (stray) return "\\ufffd";
    if (point == '\r') return " ";  // between values; a string has it escaped
    if (point < 0x10000) return formatted("\\u%04x", point);
    const auto beyond = point - 0x10000;
    return formatted("\\u%04x", 0xD800 + (beyond >> 10U)) +
           formatted("\\u%04x", 0xDC00 + (beyond & 0x3FFU));
  });
}

}  // namespace watchdog
