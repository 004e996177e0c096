/// \file
/// The user's terminal, and one that is made for a command.
#pragma once

#include <sys/ioctl.h>
#include <termios.h>

#include <string>

#include "watchdog/result.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

/// The user's terminal. Its changes are undone with this object. Use from one thread at a time.
class Terminal {
 public:
  /// `number` is a terminal, and the caller's.
  explicit Terminal(int number);
  ~Terminal() { restore(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// As it was found. In the background they may be those of the shell's line editor, so then these
  /// are usual ones.
  [[nodiscard]] const termios& settings() const { return settings_; }
  [[nodiscard]] winsize size() const;
  [[nodiscard]] int number() const { return number_; }

  /// From now on every byte comes as it is typed. Nothing happens as long as another job has the
  /// terminal; false then.
  bool make_raw();
  [[nodiscard]] bool is_raw() const { return raw_; }
  /// True if this job has the terminal.
  [[nodiscard]] bool is_ours() const;
  void restore();

 private:
  int number_;
  termios settings_{};
  bool raw_ = false;
};

/// Both ends of a terminal that a command takes for a real one. A plain value.
struct PseudoTerminal {
  FileDescriptor ours;
  FileDescriptor theirs;
  std::string name;  ///< Of their end.

  /// Errors: `exhausted`.
  [[nodiscard]] static Result<PseudoTerminal> open(const termios& settings, const winsize& size);
};

}  // namespace watchdog::monitor
