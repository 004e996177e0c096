#include "terminal/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include "terminal/output.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

volatile std::sig_atomic_t end_asked = 0;

void ask_end(int /*number*/) {
  end_asked = 1;
}

void ignore(int /*number*/) {}

/// Without SA_RESTART: a signal ends the wait for a key.
void on_signal(int number, void (*what)(int)) {
  struct sigaction action {};
  action.sa_handler = what;
  sigaction(number, &action, nullptr);
}

void say(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;  // the terminal is gone; the next key shows that
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

winsize size_now() {
  winsize size{};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  if (size.ws_col == 0) size.ws_col = 80;
  if (size.ws_row == 0) size.ws_row = 24;
  return size;
}

/// The byte sequences of keys (xterm and similar).
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> sequences{
    {{"\x1b[A", "up"},
     {"\x1bOA", "up"},
     {"\x1b[B", "down"},
     {"\x1bOB", "down"},
     {"\x1b[5~", "page up"},
     {"\x1b[6~", "page down"},
     {"\x1b[H", "home"},
     {"\x1bOH", "home"},
     {"\x1b[F", "end"},
     {"\x1bOF", "end"},
     {"\r", "enter"},
     {"\n", "enter"},
     {"\x7f", "backspace"},
     {"\b", "backspace"}}};

}  // namespace

Result<Screen> Screen::claim() {
  Screen screen;
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0 ||
      tcgetattr(STDIN_FILENO, &screen.before_) != 0) {
    return Error{ErrorCode::invalid, "not a terminal"};
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) on_signal(number, ask_end);
  on_signal(SIGWINCH, ignore);
  auto raw = screen.before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  say("\x1b[?1049h\x1b[?25l");
  screen.claimed_ = true;
  return screen;
}

Screen::~Screen() {
  if (!claimed_) return;
  say("\x1b[?25h\x1b[?1049l");
  tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
}

Screen::Screen(Screen&& other) noexcept
    : before_(other.before_),
      claimed_(std::exchange(other.claimed_, false)),
      typed_(std::move(other.typed_)) {}

std::size_t Screen::width() const {
  return size_now().ws_col;
}

std::size_t Screen::height() const {
  return size_now().ws_row;
}

void Screen::draw(const std::vector<std::string>& lines) const {
  std::string text = "\x1b[H";
  const auto columns = width();
  for (std::size_t at = 0; at < lines.size(); ++at)
    text +=
        clipped(safe_line(lines[at]), columns) + "\x1b[K" + (at + 1 < lines.size() ? "\r\n" : "");
  say(text + "\x1b[J");
}

std::optional<std::string> Screen::key(std::chrono::milliseconds at_most) {
  if (end_asked != 0) return "interrupt";
  if (typed_.empty()) {
    pollfd keyboard{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&keyboard, 1, static_cast<int>(at_most.count()));
    if (end_asked != 0) return "interrupt";
    if (ready <= 0) return std::nullopt;
    std::array<char, 256> bytes{};
    const auto got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got <= 0) return "interrupt";
    typed_.assign(bytes.data(), static_cast<std::size_t>(got));
  }
  for (const auto& [sequence, name] : sequences) {
    if (!typed_.starts_with(sequence)) continue;
    typed_.erase(0, sequence.size());
    return std::string(name);
  }
  if (typed_.front() == '\x1b') {
    if (typed_.size() == 1 || (typed_[1] != '[' && typed_[1] != 'O')) {
      typed_.erase(0, 1);
      return "escape";
    }
    typed_.clear();  // an unknown key
    return std::nullopt;
  }
  std::string one(1, typed_.front());
  typed_.erase(0, 1);
  return one;
}

}  // namespace watchdog::monitor
