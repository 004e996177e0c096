#include "terminal/columns.h"

#include <clocale>
#include <cwchar>

namespace watchdog::monitor {
namespace {

/// The C library knows how wide characters are, but only in a locale of UTF-8. This thread has one
/// while the object lives.
class Utf8Locale {
 public:
  Utf8Locale() {
    static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8 != nullptr) before_ = uselocale(utf8);
  }
  ~Utf8Locale() {
    if (before_ != nullptr) uselocale(before_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t before_ = nullptr;
};

struct Character {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};

/// The first character of the text, or its first escape. `text` is not empty.
Character first_character(std::string_view text) {
  if (text.front() == '\x1b') {
    const auto end = text.find('m');
    return {end == std::string_view::npos ? text.size() : end + 1, 0};
  }
  wchar_t character = 0;
  std::mbstate_t state{};
  const auto bytes = std::mbrtowc(&character, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) return {};  // not UTF-8: a sign for each byte
  const int columns = wcwidth(character);
  return {bytes, columns < 0 ? 0 : static_cast<std::size_t>(columns)};
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  const Utf8Locale locale;
  std::size_t columns = 0;
  while (!text.empty()) {
    const auto [bytes, wide] = first_character(text);
    columns += wide;
    text.remove_prefix(bytes);
  }
  return columns;
}

std::string_view first_columns(std::string_view text, std::size_t columns_max) {
  const Utf8Locale locale;
  std::size_t end = 0;
  std::size_t columns = 0;
  while (end < text.size()) {
    const auto [bytes, wide] = first_character(text.substr(end));
    columns += wide;
    if (columns > columns_max) break;
    end += bytes;
  }
  return text.substr(0, end);
}

std::string broken_line(const std::string& line, std::size_t columns_max) {
  constexpr std::size_t deeper = 4;
  if (columns_of(line) <= columns_max) return line;
  const auto indent = line.find_first_not_of(' ');
  if (indent == std::string::npos || indent + deeper >= columns_max) return line;
  const std::string blanks(indent + deeper, ' ');
  std::string text;
  std::string_view rest = line;
  while (columns_of(rest) + (text.empty() ? 0 : blanks.size()) > columns_max) {
    const auto room = columns_max - (text.empty() ? 0 : blanks.size());
    const auto from = text.empty() ? indent : 0;
    auto end = rest.rfind(' ', first_columns(rest, room).size());
    // The word alone is too wide: up to its end.
    if (end == std::string_view::npos || end <= from) end = rest.find(' ', from);
    if (end == std::string_view::npos) break;
    text.append(text.empty() ? "" : blanks).append(rest.substr(0, end)).append("\n");
    const auto next = rest.find_first_not_of(' ', end);
    if (next == std::string_view::npos) return text.substr(0, text.size() - 1);
    rest.remove_prefix(next);
  }
  return text.append(text.empty() ? "" : blanks).append(rest);
}

}  // namespace watchdog::monitor
