// Passwords that commands are given with a flag, and those in files of theirs.

#include <algorithm>
#include <array>

#include "privacy/secrets.h"

namespace watchdog {
namespace {

constexpr std::size_t line_bytes_max = 400;

/// The commands of the table, each once.
constexpr auto commands = [] {
  std::array<std::string_view, 16> all{};
  for (const auto& shape : shapes::all) {
    std::size_t i = 0;
    while (!all.at(i).empty() && all.at(i) != shape.command) ++i;
    if (!shape.command.empty()) all.at(i) = shape.command;
  }
  return all;
}();

/// The next word at or after `at`, as far as it fits into a line; blanks may be escaped.
Stretch word_at(std::string_view text, std::size_t at) {
  while (at < text.size() &&
         (is_blank(text[at]) || text.substr(at, 2) == "\\n" || text.substr(at, 2) == "\\t")) {
    at += is_blank(text[at]) ? 1 : 2;
  }
  auto end = at;
  const auto last = at + std::min(text.size() - std::min(at, text.size()), line_bytes_max);
  while (end < last && !is_blank(text[end]) && !is_quote(text[end]) &&
         text.substr(end, 2) != "\\n" && text.substr(end, 2) != "\\t") {
    ++end;
  }
  return {at, end};
}

}  // namespace

void NamedPrograms::read_to(std::string_view text, std::size_t end) {
  for (auto at = std::max(read_, end - std::min(end, line_bytes_max)); at < end; ++at) {
    if (text[at] == '\n' || text.substr(at, 2) == "| ") line_ = at + 1;
    for (std::size_t i = 0; i < commands.size() && !commands[i].empty(); ++i) {
      const auto first = commands[i].substr(0, commands[i].find(' '));
      const auto then = commands[i].substr(std::min(first.size() + 1, commands[i].size()));
      const auto is_here = [&](std::string_view word) {
        return text[at] == word[0] && text.substr(0, end).substr(at, word.size()) == word;
      };
      const char before = at == 0 ? ' ' : text[at - 1];
      if (is_here(first) && before != '-' && before != '.' && before != '_' &&
          may_begin_word(text, at)) {
        first_[i] = at + 1;
        if (then.empty()) whole_[i] = at + 1;
      } else if (!then.empty() && first_[i] > line_ && is_here(then)) {
        whole_[i] = first_[i];
      }
    }
  }
  read_ = end;
}

bool NamedPrograms::has(std::string_view text, std::size_t at, std::string_view command) {
  if (at > read_) read_to(text, at);
  const auto from = std::max(line_, at - std::min(at, line_bytes_max));
  const auto i = static_cast<std::size_t>(std::ranges::find(commands, command) - commands.begin());
  return whole_.at(i) > from;
}

Stretch flag_secret(std::string_view text, std::size_t at, const SecretShape& flag,
                    NamedPrograms& programs) {
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
  if (value >= text.size() || text[value] == '-' || !programs.has(text, at, flag.command))
    return {};
  if (flag.kind == SecretKind::attached || flag.kind == SecretKind::argument)
    return chosen_secret(text, value);
  const auto end_in = [&](std::string_view part) {
    const auto quoted = quoted_at(part, value);
    return quoted ? *quoted : Stretch{value, bare_end(part, value, Surroundings::text)};
  };
  const auto seen = end_in(text.substr(0, value + secret_context));
  const auto pair = text.substr(seen.begin, seen.end - seen.begin);
  const auto split = pair.find(flag.kind == SecretKind::pair ? ':' : '=');
  if (split == pair.npos || split + 1 >= pair.size()) return {};
  const auto secret = flag.kind == SecretKind::jar ? pair : pair.substr(split + 1);
  if (is_masked(secret) || (flag.kind == SecretKind::pair && is_placeholder(secret))) return {};
  return {seen.begin + (pair.size() - secret.size()), end_in(text).end};
}

Stretch netrc_secret(std::string_view text, std::size_t at) {
  if (!may_begin_word(text, at)) return {};
  const auto here = text.substr(at);
  if (!here.starts_with("machine") && !here.starts_with("default")) return {};
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
