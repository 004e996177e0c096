#include "terminal/output.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "terminal/columns.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

void write(std::FILE* to, std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), to);
}

/// True if the environment asks for a locale that has only ASCII.
bool is_ascii_asked() {
  for (const auto* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale == "C" || locale == "POSIX";
  }
  return false;
}

/// Replaces the signs of our own texts. Each stays one column wide, so tables keep their shape.
void to_ascii(std::string& text) {
  constexpr std::array<std::pair<std::string_view, char>, 4> signs{
      {{"–", '-'}, {"→", '>'}, {"…", '.'}, {"·", ','}}};
  for (const auto& [sign, plain] : signs) {
    for (auto at = text.find(sign); at != text.npos; at = text.find(sign, at + 1))
      text.replace(at, sign.size(), 1, plain);
  }
}

}  // namespace

std::string safe_text(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const auto own = std::ranges::find_if(
        own_styles, [&](std::string_view style) { return text.starts_with(style); });
    if (own != own_styles.end()) {
      safe += *own;
      text.remove_prefix(own->size());
      continue;
    }
    // An escape that is not ours is one character of the text.
    const auto part = text.substr(0, text.find('\x1b', 1));
    safe += terminal_text(part);
    text.remove_prefix(part.size());
  }
  if (is_ascii_asked()) to_ascii(safe);
  return safe;
}

std::string safe_line(std::string_view text) {
  auto line = safe_text(text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return line;
}

void print(const std::string& text) {
  write(stdout, safe_text(text));
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,=-[]";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string made = "'";
  for (const auto letter : text)
    made += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return made + "'";
}

void print_line(const std::string& text) {
  const auto safe = safe_text(text);
  const bool is_one = safe.find('\n') == std::string::npos;
  write(stdout, (is_one ? broken_line(safe, terminal_width()) : safe) + "\n");
}

void print_json(const std::string& json) {
  write(stdout, terminal_json(json) + "\n");
}

void note(const std::string& text, bool json) {
  json ? warn(text) : print_line(text);
}

void print_error(const std::string& text) {
  write(stderr, terminal_text(text));
}

void warn(const std::string& text) {
  print_error("watchdog-monitor: " + text + "\n");
}

void clear_terminal() {
  write(stdout, "\x1b[H\x1b[2J");
}

TraceCount::TraceCount(std::size_t total)
    : total_(total), is_shown_(isatty(STDERR_FILENO) == 1 && total > 1) {}

void TraceCount::show(std::size_t done) const {
  if (is_shown_)
    write(stderr, "\r" + std::to_string(done) + " of " + std::to_string(total_) + " traces");
}

void TraceCount::end_line() const {
  if (is_shown_) write(stderr, "\n");
}

}  // namespace watchdog::monitor
