#include "wrapper/terminal_progress.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace watchdog::monitor {
namespace {

constexpr char escape = '\x1b';
constexpr std::string_view beginning = "\x1b]9;4;";
constexpr std::size_t sequence_bytes_max = 32;

/// The number at the front, and the text behind it; nothing if there is none.
std::optional<int> read_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// `STATE` or `STATE;PERCENT`.
std::optional<TerminalProgress> parsed(std::string_view text) {
  const auto state = read_number(text);
  if (!state || *state >= static_cast<int>(std::size(Names<TerminalProgress::State>::all)))
    return std::nullopt;
  TerminalProgress progress{.state = static_cast<TerminalProgress::State>(*state)};
  if (text.starts_with(';')) text.remove_prefix(1);
  if (const auto percent = read_number(text)) progress.percent = std::min(*percent, 100);
  return progress;
}

}  // namespace

std::optional<TerminalProgress> ProgressSequence::feed(std::string_view bytes) {
  std::optional<TerminalProgress> newest;
  while (!bytes.empty()) {
    if (begun_.empty()) {
      const auto* const found =
          static_cast<const char*>(memchr(bytes.data(), escape, bytes.size()));
      if (found == nullptr) break;
      bytes.remove_prefix(static_cast<std::size_t>(found - bytes.data()) + 1);
      begun_ = escape;
      continue;
    }
    const char next = bytes.front();
    const bool is_body = begun_.size() >= beginning.size();
    // BEL ends it, or ESC \, of which the ESC will do.
    if (is_body && (next == '\a' || next == escape)) {
      if (auto progress = parsed(std::string_view(begun_).substr(beginning.size())))
        newest = progress;
      begun_.clear();
    } else if (begun_.size() == sequence_bytes_max ||
               (!is_body && next != beginning[begun_.size()])) {
      begun_.clear();
      if (next == escape) continue;  // another one begins
    } else {
      begun_ += next;
    }
    bytes.remove_prefix(1);
  }
  return newest;
}

}  // namespace watchdog::monitor
