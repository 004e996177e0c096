// A document begins with a line that opens more brackets than it closes and ends where JSON goes
// on. A line of a log seldom does. If it does, the next message shows that it was none: it is on a
// line of its own, or begins again without an indent.
#include "mcp/proxy/document_lines.h"

#include <utility>

#include "mcp/proxy/envelope.h"

namespace watchdog::monitor::mcp {
namespace {

constexpr std::string_view blanks = " \t\r";

/// How many brackets it opens and leaves open. A string ends on its line.
int opened_in(std::string_view line) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char letter = line[at];
    if (in_string && letter == '\\') ++at;
    if (letter == '"') in_string = !in_string;
    if (in_string) continue;
    if (letter == '{' || letter == '[') ++depth;
    if (letter == '}' || letter == ']') --depth;
  }
  return depth;
}

bool may_begin(std::string_view line) {
  const auto first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return false;
  const auto last = line.find_last_not_of(blanks);
  const bool opens = line[first] == '{' || line[first] == '[';
  const bool goes_on = line[last] == '{' || line[last] == '[' || line[last] == ',';
  return opens && goes_on && opened_in(line) > 0;
}

}  // namespace

/// True for a line that no document would have here: so what began before is none.
bool DocumentLines::begins_anew(std::string_view line) const {
  return line.starts_with('{') && may_begin(line) && (lines_ == 1 || is_indented_);
}

void DocumentLines::append(std::string_view line) {
  if (++lines_ == 2) is_indented_ = line.starts_with(' ') || line.starts_with('\t');
  depth_ += opened_in(line);
  const auto last = line.find_last_not_of(blanks);
  open_.append(open_.empty() ? "" : " ").append(line.substr(0, last + 1));
}

void DocumentLines::add(std::string line, const std::function<void(std::string)>& accept) {
  line = without_mark(std::move(line));
  if (open_.empty()) {
    if (!may_begin(line)) return accept(std::move(line));
    lines_ = 0;
    depth_ = 0;
    is_indented_ = false;
    return append(line);
  }
  const bool is_too_long = lines_ == lines_max || open_.size() + line.size() > proxied_bytes_max;
  if (is_too_long || begins_anew(line) || envelope_of(line)) {
    accept(std::exchange(open_, {}));
    return add(std::move(line), accept);
  }
  append(line);
  if (depth_ <= 0) accept(std::exchange(open_, {}));
}

}  // namespace watchdog::monitor::mcp
