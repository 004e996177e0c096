#include "setup/toml_edit.h"

#include <algorithm>
#include <array>

namespace watchdog::monitor {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view text)
      : text_(text), at_(text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  std::vector<TomlStatement> statements() {
    std::vector<TomlStatement> found;
    while (at_ < text_.size()) found.push_back(next());
    return found;
  }

 private:
  [[nodiscard]] bool is_at(std::string_view word) const {
    return text_.substr(std::min(at_, text_.size())).starts_with(word);
  }
  [[nodiscard]] bool is_at_line_end() const {
    return at_ >= text_.size() || is_at("\n") || is_at("\r\n");
  }
  void skip_blanks() {
    while (is_at(" ") || is_at("\t")) ++at_;
  }
  void skip_line() { at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1; }

  /// Behind a text in quotes; at the end of the line or file where it is left open.
  void skip_quoted() {
    for (const std::string_view quotes : {"\"\"\"", "'''"}) {
      if (!is_at(quotes)) continue;
      at_ += quotes.size();
      while (at_ < text_.size() && !is_at(quotes)) at_ += quotes[0] == '"' && is_at("\\") ? 2 : 1;
      at_ = std::min(at_ + quotes.size(), text_.size());
      while (at_ < text_.size() && text_[at_] == quotes[0]) ++at_;  // up to two more belong to it
      return;
    }
    const char quote = text_[at_++];
    while (!is_at_line_end() && text_[at_] != quote) at_ += quote == '"' && is_at("\\") ? 2 : 1;
    at_ = std::min(at_, text_.size());
    if (!is_at_line_end()) ++at_;
  }

  /// Returns the parts of a key with dots; empty: no key stands here.
  std::vector<std::string> key() {
    std::vector<std::string> path;
    while (true) {
      skip_blanks();
      const auto begin = at_;
      if (is_at("\"") || is_at("'")) {
        skip_quoted();
        if (at_ < begin + 2) return {};
        path.emplace_back(text_.substr(begin + 1, at_ - begin - 2));
      } else {
        while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                      text_[at_] == '_' || text_[at_] == '-'))
          ++at_;
        if (at_ == begin) return {};
        path.emplace_back(text_.substr(begin, at_ - begin));
      }
      skip_blanks();
      if (!is_at(".")) return path;
      ++at_;
    }
  }

  /// Behind a value, its lists and tables included.
  void skip_value() {
    int depth = 0;
    auto end = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (depth == 0 && (c == '#' || is_at_line_end())) break;
      if (c == '"' || c == '\'') {
        skip_quoted();
        end = at_;
        continue;
      }
      if (c == '#') {
        skip_line();
        continue;
      }
      if (c == '[' || c == '{') ++depth;
      if (c == ']' || c == '}') --depth;
      ++at_;
      if (c != ' ' && c != '\t') end = at_;
    }
    at_ = end;
  }

  TomlStatement next() {
    TomlStatement statement{.begin = at_};
    skip_blanks();
    if (is_at("[")) {
      at_ += is_at("[[") ? 2 : 1;
      statement.path = key();
      if (!statement.path.empty() && is_at("]")) statement.kind = TomlStatement::Kind::header;
    } else if (!is_at_line_end() && !is_at("#")) {
      statement.path = key();
      if (!statement.path.empty() && is_at("=")) {
        statement.kind = TomlStatement::Kind::pair;
        ++at_;
        skip_blanks();
        statement.value_begin = at_;
        skip_value();
        statement.value_end = at_;
      }
    }
    skip_line();
    statement.end = at_;
    return statement;
  }

  std::string_view text_;
  std::size_t at_;
};

}  // namespace

std::vector<TomlStatement> toml_statements(std::string_view text) {
  return Scanner(text).statements();
}

}  // namespace watchdog::monitor
