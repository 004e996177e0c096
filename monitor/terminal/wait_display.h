/// \file
/// The display and questions of a waiting command on a terminal.
#pragma once

#include <mutex>
#include <stop_token>
#include <string>

namespace watchdog::monitor {

/// One line on standard error that is drawn again and again, where that is a terminal. Thread-safe.
class WaitDisplay {
 public:
  WaitDisplay();
  ~WaitDisplay();
  WaitDisplay(const WaitDisplay&) = delete;
  WaitDisplay& operator=(const WaitDisplay&) = delete;

  void show(const std::string& line);
  /// Something that stays, on a line of its own, whether there is a terminal or not.
  void say(const std::string& text);
  /// Takes the line away, so that something else can be written.
  void leave();
  [[nodiscard]] bool is_terminal() const noexcept { return terminal_; }
  /// Returns whether a person can be asked.
  [[nodiscard]] bool can_ask() const noexcept { return can_ask_; }
  /// Asks whether to go on; one question at a time. Returns false also when `stop` is requested, or
  /// the terminal is gone. REQUIRES: can_ask().
  [[nodiscard]] bool ask(const std::string& question, const std::stop_token& stop);

 private:
  void clear();

  std::mutex asking_;  ///< Held during a question. Locked first.
  std::mutex mutex_;   ///< Guards what follows, and standard error.
  const bool terminal_;
  const bool can_ask_;
  bool drawn_ = false;
  bool held_ = false;  ///< A question is on the screen.
};

}  // namespace watchdog::monitor
