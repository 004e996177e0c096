#include "terminal/wait_display.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

/// Returns the part of the line that fits into the terminal's width; no character is split.
std::string_view fitting(std::string_view line) {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return line;
  std::size_t at = 0;
  for (int column = 1; at < line.size() && column < size.ws_col; ++column) {
    do ++at;
    while (at < line.size() && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80);
  }
  return line.substr(0, at);
}

void write_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

WaitDisplay::WaitDisplay()
    : terminal_(isatty(STDERR_FILENO) == 1), can_ask_(terminal_ && isatty(STDIN_FILENO) == 1) {}

WaitDisplay::~WaitDisplay() {
  clear();
}

void WaitDisplay::clear() {
  if (drawn_) write_text("\r\x1b[K");
  drawn_ = false;
}

void WaitDisplay::show(const std::string& line) {
  const std::lock_guard guard(mutex_);
  if (!terminal_ || held_) return;
  write_text("\r\x1b[K" + std::string(fitting(safe_line(line))));
  drawn_ = true;
}

void WaitDisplay::say(const std::string& text) {
  const std::lock_guard guard(mutex_);
  clear();
  write_text(safe_text(text) + "\n");
}

void WaitDisplay::leave() {
  const std::lock_guard guard(mutex_);
  clear();
}

bool WaitDisplay::ask(const std::string& question, const std::stop_token& stop) {
  const std::lock_guard turn(asking_);
  {
    const std::lock_guard guard(mutex_);
    clear();
    write_text(safe_line(question) + " [y/N] ");
    held_ = true;
  }
  const int called_off = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::string answer;
  {
    const std::stop_callback on_stop(stop, [&] {
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = write(called_off, &one, sizeof one);
    });
    std::array<pollfd, 2> fds{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{called_off, POLLIN, 0}};
    for (char next = 0; next != '\n' && poll(fds.data(), fds.size(), -1) > 0;) {
      if (fds[1].revents != 0 || read(STDIN_FILENO, &next, 1) != 1) break;
      answer += next;
    }
  }
  close(called_off);
  const std::lock_guard guard(mutex_);
  held_ = false;
  return answer == "y\n" || answer == "yes\n";
}

}  // namespace watchdog::monitor
