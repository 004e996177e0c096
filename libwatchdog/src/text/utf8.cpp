#include "text/utf8.h"

#include <algorithm>

namespace watchdog {

std::size_t character_bytes(std::string_view text) noexcept {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  const auto follows = [&](std::size_t at) { return (byte(at) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool allowed = (first != 0xE0 || byte(1) >= 0xA0) && (first != 0xED || byte(1) < 0xA0);
    return allowed && follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool allowed = (first != 0xF0 || byte(1) >= 0x90) && (first != 0xF4 || byte(1) < 0x90);
    return allowed && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void drop_half_character(std::string& text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const auto at = text.size() - back;
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) continue;
    if (character_bytes(std::string_view(text).substr(at)) == 0) text.resize(at);
    return;
  }
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const auto bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::size_t characters_in(std::string_view text) noexcept {
  std::size_t count = 0;
  for (; !text.empty(); ++count)
    text.remove_prefix(std::max<std::size_t>(character_bytes(text), 1));
  return count;
}

std::string_view last_characters(std::string_view text, std::size_t count) noexcept {
  std::size_t at = text.size();
  while (at > 0 && count > 0) {
    --at;
    if ((static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U) --count;
  }
  return text.substr(at);
}

}  // namespace watchdog
