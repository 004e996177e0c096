#include "proxy/connection/answer_form.h"

#include <algorithm>
#include <array>

namespace watchdog::monitor {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// `part`: in lower case.
bool contains(std::string_view text, std::string_view part) noexcept {
  const auto is_same = [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), is_same) != text.end();
}

}  // namespace

AnswerForm form_of_type(std::string_view content_type) noexcept {
  const auto type = content_type.substr(0, content_type.find(';'));
  if (contains(type, "text/event-stream")) return AnswerForm::events;
  return contains(type, "ndjson") || contains(type, "jsonl") ? AnswerForm::lines
                                                             : AnswerForm::opaque;
}

AnswerStart start_of_body(std::string_view bytes) noexcept {
  if (byte_order_mark.starts_with(bytes.substr(0, byte_order_mark.size())) && !bytes.empty()) {
    if (bytes.size() < byte_order_mark.size()) return AnswerStart::unknown;
    bytes.remove_prefix(byte_order_mark.size());
  }
  bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
  if (bytes.empty()) return AnswerStart::unknown;
  if (bytes.front() == ':') return AnswerStart::events;
  if (bytes.front() == '{') return AnswerStart::json;
  constexpr std::array<std::string_view, 4> fields{"data:", "event:", "id:", "retry:"};
  for (const auto field : fields) {
    if (bytes.starts_with(field)) return AnswerStart::events;
    if (field.starts_with(bytes)) return AnswerStart::unknown;
  }
  return AnswerStart::other;
}

}  // namespace watchdog::monitor
