#include "wrapper/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace watchdog::monitor {

namespace {

/// A line editor turns these off while it reads a line.
void make_usual(termios& settings) {
  settings.c_iflag |= ICRNL | IXON | BRKINT;
  settings.c_oflag |= OPOST | ONLCR;
  settings.c_lflag |= ICANON | ECHO | ECHOE | ECHOK | ISIG | IEXTEN;
}

}  // namespace

Terminal::Terminal(int number) : number_(number) {
  tcgetattr(number_, &settings_);
  if (!is_ours()) make_usual(settings_);
}

bool Terminal::is_ours() const {
  return tcgetpgrp(number_) == getpgrp();
}

winsize Terminal::size() const {
  winsize size{};
  ioctl(number_, TIOCGWINSZ, &size);
  return size;
}

bool Terminal::make_raw() {
  if (raw_) return true;
  if (!is_ours()) return false;
  // Another job may have changed it meanwhile.
  tcgetattr(number_, &settings_);
  termios raw = settings_;
  cfmakeraw(&raw);
  raw_ = tcsetattr(number_, TCSADRAIN, &raw) == 0;
  return raw_;
}

void Terminal::restore() {
  if (std::exchange(raw_, false)) tcsetattr(number_, TCSADRAIN, &settings_);
}

Result<PseudoTerminal> PseudoTerminal::open(const termios& settings, const winsize& size) {
  PseudoTerminal made;
  const auto refused = [] {
    return Error{ErrorCode::exhausted,
                 "no terminal for the command: " + std::generic_category().message(errno)};
  };
  made.ours = FileDescriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.ours || grantpt(made.ours.get()) != 0 || unlockpt(made.ours.get()) != 0)
    return refused();
  std::array<char, 64> name{};
  if (ptsname_r(made.ours.get(), name.data(), name.size()) != 0) return refused();
  made.name = name.data();
  made.theirs = FileDescriptor(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!made.theirs) return refused();
  tcsetattr(made.theirs.get(), TCSANOW, &settings);
  ioctl(made.theirs.get(), TIOCSWINSZ, &size);
  return made;
}

}  // namespace watchdog::monitor
