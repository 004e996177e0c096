// The token is inserted into the text. A tree that is written again would change numbers, escapes
// and the order of members, and so what the tool server reads.
#include "mcp/proxy/progress_token.h"

#include <cstddef>

namespace watchdog::monitor::mcp {
namespace {

/// The place of a member's value. A plain value.
struct ValuePlace {
  std::size_t at = 0;
  int count = 0;  ///< How often the object has the member.
};

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  const auto found = text.find_first_not_of(" \t\r\n", at);
  return found == std::string_view::npos ? text.size() : found;
}

/// Returns the position behind a text that begins at `at`.
std::size_t skip_text(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return text.size();
}

/// Returns the position behind a value that begins at `at`.
std::size_t skip_value(std::string_view text, std::size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char letter = text[at];
    if (letter == '"') {
      at = skip_text(text, at);
      if (depth == 0) return at;
      continue;
    }
    if (letter == '{' || letter == '[') {
      ++depth;
    } else if (letter == '}' || letter == ']') {
      if (depth == 0) return at;
      if (--depth == 0) return at + 1;
    } else if (letter == ',' && depth == 0) {
      return at;
    }
    ++at;
  }
  return at;
}

/// Finds a member of the object that begins at `at`. REQUIRES: the text is JSON.
ValuePlace member_place(std::string_view text, std::size_t at, std::string_view name) {
  ValuePlace place;
  at = skip_blanks(text, at + 1);
  while (at < text.size() && text[at] == '"') {
    const auto key_end = skip_text(text, at);
    const auto key = text.substr(at + 1, key_end - at - 2);
    const auto value = skip_blanks(text, skip_blanks(text, key_end) + 1);
    if (key == name) place = {value, place.count + 1};
    // An escaped name could be the same one.
    if (key.find('\\') != std::string_view::npos) place.count += 2;
    at = skip_blanks(text, skip_value(text, value));
    if (at < text.size() && text[at] == ',') at = skip_blanks(text, at + 1);
  }
  return place;
}

bool is_object_at(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] == '{';
}

std::string with_first_member(std::string_view text, std::size_t object, const std::string& made) {
  const auto next = skip_blanks(text, object + 1);
  const bool is_empty = next < text.size() && text[next] == '}';
  std::string changed(text.substr(0, object + 1));
  changed.append(made).append(is_empty ? "" : ",").append(text.substr(object + 1));
  return changed;
}

}  // namespace

std::optional<std::string> with_progress_token(std::string_view text, std::string_view token) {
  const auto begin = skip_blanks(text, 0);
  if (!is_object_at(text, begin)) return std::nullopt;
  const auto params = member_place(text, begin, "params");
  if (params.count != 1 || !is_object_at(text, params.at)) return std::nullopt;
  const auto made = "\"progressToken\":\"" + std::string(token) + "\"";
  const auto meta = member_place(text, params.at, "_meta");
  if (meta.count == 0) return with_first_member(text, params.at, "\"_meta\":{" + made + "}");
  if (meta.count != 1 || !is_object_at(text, meta.at)) return std::nullopt;
  if (member_place(text, meta.at, "progressToken").count != 0) return std::nullopt;
  return with_first_member(text, meta.at, made);
}

}  // namespace watchdog::monitor::mcp
