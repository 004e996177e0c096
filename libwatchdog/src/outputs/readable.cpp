#include <algorithm>
#include <string>
#include <string_view>

#include "text/utf8.h"
#include "watchdog/artifact_store.h"

namespace watchdog {
namespace {

constexpr char escape = '\x1B';
constexpr std::string_view replacement = "\xEF\xBF\xBD";

bool within(char c, int from, int to) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= from && byte <= to;
}

/// Returns the end of a control sequence whose parameters begin at `at` (ECMA-48, section 5.4).
std::size_t after_parameters(std::string_view text, std::size_t at) {
  while (at < text.size() && within(text[at], 0x20, 0x3F)) ++at;
  return at < text.size() && within(text[at], 0x40, 0x7E) ? at + 1 : at;
}

/// Returns the end of a command string that begins at `at`: BEL or ESC \ or U+009C. If it does not
/// end on its line, it is not one: nothing may hide the rest of an output.
std::size_t after_string(std::string_view text, std::size_t at) {
  for (auto i = at; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\a') return i + 1;
    if (text[i] == escape) return text.substr(i, 2) == "\x1B\\" ? i + 2 : at;
    if (text.substr(i, 2) == "\xC2\x9C") return i + 2;
    if (text.substr(i, 1) == "\xC2" && within(text[std::min(i + 1, text.size() - 1)], 0x80, 0x9F))
      return at;
  }
  return at;
}

/// Returns the end of a sequence after `kind`, the second byte of its seven-bit form.
std::size_t after_sequence(std::string_view text, char kind, std::size_t at) {
  if (kind == '[') return after_parameters(text, at);
  if (std::string_view("]P^_X").find(kind) != std::string_view::npos) return after_string(text, at);
  return at;
}

/// Returns the end of the escape sequence that begins at `at`.
std::size_t after_escape(std::string_view text, std::size_t at) {
  ++at;
  if (at == text.size()) return at;
  if (within(text[at], 0x40, 0x5F)) return after_sequence(text, text[at], at + 1);
  while (at < text.size() && within(text[at], 0x20, 0x2F)) ++at;
  return at < text.size() && within(text[at], 0x30, 0x7E) ? at + 1 : at;
}

void erase_last_character(std::string& text) {
  if (text.empty() || text.back() == '\n' || text.back() == '\r') return;
  while (text.size() > 1 && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U)
    text.pop_back();
  text.pop_back();
}

/// Returns the visible text as UTF-8: no controls except tabs and ends of lines.
std::string without_controls(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (std::size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    if (const auto bytes = character_bytes(raw.substr(at)); bytes == 0) {
      text += replacement;
      ++at;
    } else if (c == escape) {
      at = after_escape(raw, at);
    } else if (c == '\xC2' && within(raw[at + 1], 0x80, 0x9F)) {  // the same in eight bits
      at = after_sequence(raw, static_cast<char>(static_cast<unsigned char>(raw[at + 1]) - 0x40),
                          at + 2);
    } else {
      if (c == '\b') {
        erase_last_character(text);
      } else if (c == '\v' || c == '\f') {
        text += '\n';
      } else if (bytes > 1 || c == '\t' || c == '\n' || c == '\r' ||
                 !(within(c, 0, 0x1F) || c == 0x7F)) {
        text += raw.substr(at, bytes);
      }
      at += bytes;
    }
  }
  return text;
}

/// Of a line that was written over, what was written last.
std::string_view last_state(std::string_view line) {
  const auto end = line.find_last_not_of('\r');
  if (end == std::string_view::npos) return {};
  line = line.substr(0, end + 1);
  const auto begin = line.rfind('\r');
  return begin == std::string_view::npos ? line : line.substr(begin + 1);
}

}  // namespace

std::string readable(std::string_view raw) {
  auto text = without_controls(raw);
  if (text.find('\r') == std::string::npos) return text;
  std::string lines;
  lines.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines += last_state(std::string_view(text).substr(at, end - at));
    if (end < text.size()) lines += '\n';
    at = end + 1;
  }
  return lines;
}

}  // namespace watchdog
