// Passwords that commands are given with a flag, and those in files of theirs.

#include <algorithm>
#include <array>

#include "privacy/secrets.h"

namespace watchdog {
namespace {

constexpr std::size_t line_bytes_max = 400;

/// Returns whether the line up to `at` names a program that begins with `command`, or with its
/// first word and then has the others. A pipe begins another line.
bool is_command(std::string_view text, std::size_t at, std::string_view command) {
  const auto first = command.substr(0, command.find(' '));
  const auto then = command.substr(std::min(first.size() + 1, command.size()));
  const auto begin = at - std::min(at, line_bytes_max);
  auto line = text.substr(begin, at - begin);
  if (const auto end = line.rfind('\n'); end != line.npos) line.remove_prefix(end + 1);
  if (const auto pipe = line.rfind("| "); pipe != line.npos) line.remove_prefix(pipe + 1);
  for (auto found = line.find(first); found != line.npos; found = line.find(first, found + 1)) {
    if (line.find(then, found) == line.npos) return false;
    const char before = found == 0 ? ' ' : line[found - 1];
    if (before != '-' && before != '.' && before != '_' && may_begin_word(line, found)) return true;
  }
  return false;
}

/// The next word at or after `at`; blanks may be escaped.
Stretch word_at(std::string_view text, std::size_t at) {
  while (at < text.size() &&
         (is_blank(text[at]) || text.substr(at, 2) == "\\n" || text.substr(at, 2) == "\\t")) {
    at += is_blank(text[at]) ? 1 : 2;
  }
  auto end = at;
  while (end < text.size() && !is_blank(text[end]) && !is_quote(text[end]) &&
         text.substr(end, 2) != "\\n" && text.substr(end, 2) != "\\t") {
    ++end;
  }
  return {at, end};
}

}  // namespace

Stretch flag_secret(std::string_view text, std::size_t at, const SecretShape& flag) {
  const auto name = flag.text.substr(1);
  const auto end = at + 1 + name.size();
  if (text.substr(at + 1, name.size()) != name || end >= text.size()) return {};
  const char next = text[end];
  const bool is_long = name.starts_with("--");
  const bool is_list = is_quote(next) || next == '\\' || next == ',';  // ["-u", "a:b"]
  auto value = end;
  if (flag.kind == SecretKind::attached) {
    const bool is_word = is_quote(text[at]);
    if (is_blank(next) || (is_word && is_list)) return {};
  } else if (is_blank(next) || is_list || (is_long && next == '=')) {
    value = is_long && next == '=' ? end + 1 : skip(text, end, " \t");
    if (is_list && is_quote(text[at])) {
      value = skip(text, end, "\\\"'");
      if (value >= text.size() || text[value] != ',') return {};
      value = skip(text, value, ", \t\n");
    }
  } else if (is_long) {
    return {};
  }
  if (value >= text.size() || text[value] == '-' || !is_command(text, at, flag.command)) return {};
  if (flag.kind == SecretKind::attached || flag.kind == SecretKind::argument)
    return chosen_secret(text, value);
  const auto quoted = quoted_at(text, value);
  const auto given = quoted ? *quoted : Stretch{value, bare_end(text, value, false)};
  const auto pair = text.substr(given.begin, given.end - given.begin);
  const auto split = pair.find(flag.kind == SecretKind::pair ? ':' : '=');
  if (split == pair.npos || split + 1 >= pair.size()) return {};
  if (flag.kind == SecretKind::jar) return given;
  const auto secret = pair.substr(split + 1);
  return is_placeholder(secret) ? Stretch{} : Stretch{given.begin + split + 1, given.end};
}

Stretch netrc_secret(std::string_view text, std::size_t at) {
  if (!may_begin_word(text, at)) return {};
  auto next = at;
  bool has_login = false;
  for (int words = 0; words < 8; ++words) {
    const auto word = word_at(text, next);
    if (word.begin >= text.size() || word.begin > at + line_bytes_max) return {};
    const auto name = text.substr(word.begin, word.end - word.begin);
    const auto value = word_at(text, word.end);
    if (words == 0 && name == "default") {
      next = word.end;
      continue;
    }
    if (words == 0 ? name != "machine"
                   : (name != "login" && name != "account" && name != "password")) {
      return {};
    }
    has_login |= name == "login";
    if (name == "password" && value.end > value.begin) {
      const auto after = word_at(text, value.end);
      const bool is_line =
          words > 1 || has_login || text.substr(after.begin, after.end - after.begin) == "login";
      return is_line ? value : Stretch{};
    }
    next = value.end;
  }
  return {};
}

}  // namespace watchdog
