#include "api/exposition.h"

#include <array>
#include <charconv>
#include <cmath>

namespace watchdog::monitor {
namespace {

/// Escapes backslashes, ends of lines and, in a label's value, quotes.
void append_escaped(std::string& into, std::string_view text, bool quoted) {
  for (const char c : text) {
    if (c == '\n') {
      into += "\\n";
      continue;
    }
    if (c == '\\' || (quoted && c == '"')) into += '\\';
    into += c;
  }
}

void append_number(std::string& into, double value) {
  if (std::isnan(value)) {
    into += "NaN";
  } else if (std::isinf(value)) {
    into += value > 0 ? "+Inf" : "-Inf";
  } else {
    std::array<char, 32> digits{};
    into.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
  }
}

}  // namespace

Exposition& Exposition::family(std::string_view name, std::string_view type,
                               std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ");
  append_escaped(text_, help, false);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  return *this;
}

void Exposition::head(Labels labels, std::string_view suffix) {
  text_.append(name_).append(suffix);
  char separator = '{';
  for (const auto& [name, value] : labels) {
    text_ += separator;
    text_.append(name).append("=\"");
    append_escaped(text_, value, true);
    text_ += '"';
    separator = ',';
  }
  text_.append(separator == ',' ? "} " : " ");
}

Exposition& Exposition::sample(std::int64_t value, Labels labels, std::string_view suffix) {
  head(labels, suffix);
  text_.append(std::to_string(value)).append("\n");
  return *this;
}

Exposition& Exposition::sample(double value, Labels labels, std::string_view suffix) {
  head(labels, suffix);
  append_number(text_, value);
  text_ += '\n';
  return *this;
}

}  // namespace watchdog::monitor
