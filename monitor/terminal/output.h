/// \file
/// The only way of this program's text to standard output and standard error. Agents, files,
/// servers and command lines say much of it, so nothing in it may steer a terminal: each unsafe
/// character is shown by its number, as terminal_text() does. The program's own colours stay.
/// Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Text as print() writes it.
[[nodiscard]] std::string safe_text(std::string_view text);
/// The same in one line: line feeds and tabs become spaces.
[[nodiscard]] std::string safe_line(std::string_view text);
/// The text as one word of a shell, for command lines that people copy.
[[nodiscard]] std::string shell_word(const std::string& text);

/// To standard output.
void print(const std::string& text);
void print_line(const std::string& text);
/// JSON on a line of its own. Unsafe characters are escaped as JSON escapes them, so that it means
/// the same.
void print_json(const std::string& json);

/// A remark about what was printed: below it, or to standard error where that is JSON.
void note(const std::string& text, bool json);

/// To standard error.
void print_error(const std::string& text);
/// `watchdog-monitor: TEXT` on a line of its own, to standard error.
void warn(const std::string& text);

/// Empties the terminal that standard output is.
void clear_terminal();

/// `3 of 17 traces` on standard error, drawn again and again where that is a terminal and there is
/// more than one. Use from one thread.
class TraceCount {
 public:
  explicit TraceCount(std::size_t total);
  void show(std::size_t done) const;
  /// Ends the line, before something else is written and when all are done.
  void end_line() const;

 private:
  std::size_t total_;
  bool is_shown_;
};

}  // namespace watchdog::monitor
