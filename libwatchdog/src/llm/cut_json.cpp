#include "llm/cut_json.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "text/utf8.h"

namespace watchdog {
namespace {

/// Returns the place of the quote that ends the string whose content begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at) {
  const auto begin = at;
  while (true) {
    const auto quote = text.find('"', at);
    if (quote == std::string_view::npos) return quote;
    std::size_t slashes = 0;
    while (quote - slashes > begin && text[quote - slashes - 1] == '\\') ++slashes;
    if (slashes % 2 == 0) return quote;
    at = quote + 1;
  }
}

/// Returns what is complete of a string's content: no half escape, character or surrogate pair.
std::string whole_characters(std::string_view content) {
  constexpr std::size_t unicode_escape = 6;
  constexpr std::size_t short_escape = 2;
  std::size_t half_pair = std::string_view::npos;  // where a first surrogate ended the text so far
  std::size_t at = 0;
  while ((at = content.find('\\', at)) != std::string_view::npos) {
    const bool is_unicode = content.substr(at + 1).starts_with('u');
    const auto size = is_unicode ? unicode_escape : short_escape;
    if (content.size() - at < size) break;
    const bool is_first =
        is_unicode && (content[at + 2] == 'd' || content[at + 2] == 'D') &&
        std::string_view("89abAB").find(content[at + 3]) != std::string_view::npos;
    half_pair = is_first ? at : std::string_view::npos;
    at += size;
  }
  auto end = std::min(at, content.size());
  // The second half of a pair follows the first one at once.
  if (half_pair != std::string_view::npos && half_pair + unicode_escape == end) end = half_pair;
  std::string kept(content.substr(0, end));
  drop_half_character(kept);
  return kept;
}

}  // namespace

std::string closed_json(std::string_view beginning) {
  std::vector<char> open;  // the brackets that close what is open
  std::size_t whole = 0;   // up to here all is complete
  bool is_name = false;    // the next string of an object is one
  std::string last;        // the begin of a string that breaks off
  for (std::size_t at = 0; at < beginning.size();) {
    const char c = beginning[at];
    if (c == '"') {
      const auto end = string_end(beginning, at + 1);
      if (end == std::string_view::npos) {
        if (is_name || open.empty()) break;
        last = std::string(beginning.substr(whole, at + 1 - whole)) +
               whole_characters(beginning.substr(at + 1)) + '"';
        break;
      }
      at = end + 1;
      if (!is_name) whole = at;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') {
      open.push_back(c == '{' ? '}' : ']');
      is_name = c == '{';
      whole = at;
    } else if (c == '}' || c == ']') {
      if (open.empty()) break;
      open.pop_back();
      whole = at;
      is_name = false;
      if (open.empty()) break;
    } else if (c == ',') {
      is_name = !open.empty() && open.back() == '}';
    } else if (c == ':') {
      is_name = false;
    } else if (std::strchr(" \t\r\n", c) == nullptr) {
      // A number or a word is complete if something follows it.
      const auto end = beginning.find_first_of(",]} \t\r\n", at);
      if (end == std::string_view::npos) break;
      at = whole = end;
    }
  }
  if (whole == 0) return {};
  std::string closed(beginning.substr(0, whole));
  closed += last;
  closed.append(open.rbegin(), open.rend());
  return closed;
}

}  // namespace watchdog
