/// \file
/// A full-screen terminal display, drawn each time and restored at the end.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Use from one thread at a time; one in a process.
class Screen {
 public:
  /// Takes the terminal of standard input and output. Errors: `invalid` (there is none).
  [[nodiscard]] static Result<Screen> claim();
  /// Gives it back.
  ~Screen();
  Screen(Screen&& other) noexcept;
  Screen& operator=(Screen&&) = delete;
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::size_t height() const;
  /// Shows the lines from the top, cut at the right.
  void draw(const std::vector<std::string>& lines) const;
  /// The next key (see Key), or nothing: the time passed, or the size changed. Being asked to end
  /// (SIGINT, SIGTERM, SIGHUP, the terminal gone) is `interrupt`.
  [[nodiscard]] std::optional<std::string> key(std::chrono::milliseconds at_most);

 private:
  Screen() = default;
  termios before_{};
  bool claimed_ = false;
  std::string typed_;  ///< Not taken yet.
};

}  // namespace watchdog::monitor
