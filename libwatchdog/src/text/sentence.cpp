#include "text/sentence.h"

#include <algorithm>

namespace watchdog {
namespace {

bool is_small(char c) {
  return c >= 'a' && c <= 'z';
}

/// `waits`, `timeout:`, but not `read_file`, `src/a.cpp:3:` or `apiKey`
bool is_plain(std::string_view word) {
  if (!word.empty() && (word.back() == ',' || word.back() == ':' || word.back() == ';'))
    word.remove_suffix(1);
  return !word.empty() && std::ranges::all_of(word, is_small);
}

}  // namespace

std::string sentence(std::string text, std::string_view subject) {
  if (text.empty() || !is_small(text.front())) return text;
  if (is_plain(std::string_view(text).substr(0, text.find(' ')))) {
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
    return text;
  }
  return std::string(subject) + text;
}

}  // namespace watchdog
