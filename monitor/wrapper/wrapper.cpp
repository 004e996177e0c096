// Runs a command and observes it. One loop polls signals, keys, news of the supervisor,
// heartbeats and cancels; each output stream has a `Pump` on its own thread. At the end the
// terminal is restored, the output drained, and the outcome reported.
//
// This process reads keys only if all three files are a terminal, so a terminal has one reader. A
// shell does not notify a job that the terminal is its own again, so each turn tries to take it.
#include "wrapper/wrapper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t keys_bytes = 4'096;
constexpr int pipe_bytes = 1'024 * 1'024;
/// Between two looks at what does not want to end.
constexpr Millis sample_every{20};
/// Between two looks whether a job in the background was called to the front.
constexpr Millis terminal_look_every{200};
/// Signals to pass on.
constexpr int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

Millis now() {
  return system_clock().since_boot();
}

std::string reason(int number) {
  return std::generic_category().message(number);
}

std::string shown(const Descendant& process) {
  std::string text;
  for (const char* at = process.name.data(); *at != '\0'; ++at)
    text += *at > ' ' && *at <= '~' ? *at : '?';
  return text + " (" + std::to_string(process.pid) + ")";
}

/// True if the process has one of these files open.
bool has_open(pid_t pid, const std::vector<std::string>& origins) {
  std::error_code gone;
  const auto folder = "/proc/" + std::to_string(pid) + "/fd";
  for (std::filesystem::directory_iterator at(folder, gone), end; !gone && at != end;
       at.increment(gone)) {
    std::error_code unreadable;
    const auto target = std::filesystem::read_symlink(at->path(), unreadable).string();
    if (std::ranges::find(origins, target) != origins.end()) return true;
  }
  return false;
}

}  // namespace

Outcome WrapEnd::outcome(const std::optional<CancelRequest>& cancel) const {
  if (cancelled && cancel)
    return {.kind = OutcomeKind::cancelled,
            .reason = std::string(reasons::cancelled),
            .error = cancel->reason,
            .subject = cancel->by};
  // An agent's own word is more exact than a code. A signal or a code that denies it counts more:
  // the agent may be a part of the command.
  const auto denied = code == 0 ? OutcomeKind::failed : OutcomeKind::completed;
  if (stated && error.empty() && !signal && stated->kind != denied) return *stated;
  if (code == 0) return {OutcomeKind::completed, std::string(reasons::task_complete), {}};
  auto how = error;
  if (how.empty() && signal)
    how = "signal " + std::to_string(*signal) + " (" + strsignal(*signal) + ")";
  if (how.empty()) how = "exit code " + std::to_string(code.value_or(0));
  return {OutcomeKind::failed, std::string(reasons::process_exited), std::move(how)};
}

Result<std::unique_ptr<Wrapper>> Wrapper::prepare(WrapSpec spec) {
  std::unique_ptr<Wrapper> made(new Wrapper(std::move(spec)));
  Launch launch{.words = made->spec_.words, .set = made->spec_.set, .unset = made->spec_.unset};
  if (auto opened = made->open_files(launch); !opened) return opened.error();
  made->cancel_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  made->block_signals(launch);
  auto command = Command::prepare(launch);
  for (const int file : launch.files)
    if (file > STDERR_FILENO) close(file);
  if (!command) return command.error();
  made->command_.emplace(std::move(*command));
  return made;
}

Wrapper::~Wrapper() = default;

Result<void> Wrapper::open_files(Launch& launch) {
  launch.ignored = spec_.ignored;
  const bool reads_terminal = isatty(STDIN_FILENO) == 1;
  if (reads_terminal && isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1)
    return open_terminal(launch);
  if (spec_.closed[STDIN_FILENO]) launch.files[STDIN_FILENO] = -1;
  for (const int number : {STDOUT_FILENO, STDERR_FILENO}) {
    if (spec_.closed[static_cast<std::size_t>(number)]) {
      launch.files[static_cast<std::size_t>(number)] = -1;
      continue;
    }
    const bool shows = reads_terminal && isatty(number) == 1;
    if (auto opened = shows ? open_screen(launch, number) : open_pipe(launch, number); !opened)
      return opened;
  }
  return {};
}

/// A terminal of the command's own.
Result<void> Wrapper::open_terminal(Launch& launch) {
  terminal_.emplace(STDIN_FILENO);
  auto terminal = PseudoTerminal::open(terminal_->settings(), terminal_->size());
  if (!terminal) return terminal.error();
  launch.has_terminal = true;
  launch.caller_terminal = STDIN_FILENO;
  launch.caller_terminal_settings = terminal_->settings();
  inner_ = std::move(terminal->ours);
  launch.files.fill(fcntl(terminal->theirs.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  streams_.push_back({.from = FileDescriptor(fcntl(inner_.get(), F_DUPFD_CLOEXEC, 3)),
                      .to = STDOUT_FILENO,
                      .origin = terminal->name});
  fcntl(inner_.get(), F_SETFL, O_RDWR | O_NONBLOCK);
  return {};
}

/// A terminal for one output stream: it looks like the caller's, which the command reads itself. It
/// changes no byte; the caller's does, as it is set.
Result<void> Wrapper::open_screen(Launch& launch, int number) {
  termios settings{};
  winsize size{};
  tcgetattr(number, &settings);
  ioctl(number, TIOCGWINSZ, &size);
  cfmakeraw(&settings);
  auto terminal = PseudoTerminal::open(settings, size);
  if (!terminal) return terminal.error();
  inner_ = FileDescriptor(fcntl(terminal->ours.get(), F_DUPFD_CLOEXEC, 3));
  launch.files[static_cast<std::size_t>(number)] =
      fcntl(terminal->theirs.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  streams_.push_back({.from = std::move(terminal->ours), .to = number, .origin = terminal->name});
  return {};
}

Result<void> Wrapper::open_pipe(Launch& launch, int number) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Error{ErrorCode::exhausted, "no pipe for the command: " + reason(errno)};
  fcntl(ends[0], F_SETPIPE_SZ, pipe_bytes);  // as large as it may be: the more, the fewer switches
  struct stat facts {};
  fstat(ends[0], &facts);
  streams_.push_back({.from = FileDescriptor(ends[0]),
                      .to = number,
                      .origin = "pipe:[" + std::to_string(facts.st_ino) + "]"});
  launch.files[static_cast<std::size_t>(number)] = ends[1];
  return {};
}

void Wrapper::block_signals(Launch& launch) {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : passed_on) sigaddset(&handled, number);
  if (inner_) sigaddset(&handled, SIGWINCH);
  if (terminal_) {
    sigaddset(&handled, SIGCONT);
    sigaddset(&handled, SIGTSTP);
  }
  sigprocmask(SIG_BLOCK, &handled, &launch.signals);
  signals_ = FileDescriptor(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
}

WrapEnd Wrapper::run(Reporting& reporting) {
  reporting_ = &reporting;
  reporting.on_cancel([this] { eventfd_write(cancel_.get(), 1); });
  for (auto& stream : streams_) {
    auto& watch = watches_.emplace_back(std::make_unique<OutputWatch>(
        spec_.recognition, tally_,
        [&reporting](Report report) { reporting.say(std::move(report)); }));
    const auto tap = [&watch = *watch](std::string_view bytes) {
      bytes.empty() ? watch.finish() : watch.feed(bytes);
    };
    pumps_.push_back(std::make_unique<Pump>(std::move(stream.from), stream.to, tap));
  }
  if (terminal_) terminal_->make_raw();
  command_->begin();
  while (!over_) turn();
  if (drain()) account_for_output();
  if (terminal_) terminal_->restore();
  beat();
  pumps_.clear();
  for (const auto& watch : watches_)
    if (watch->stated_end()) end_.stated = watch->stated_end();
  end_.lines = tally_.lines;
  end_.bytes = tally_.bytes;
  end_.cpu_ms = command_->cpu_ms();
  command_.reset();
  return end_;
}

int Wrapper::poll_timeout() const {
  auto until = beat_at_;
  if (kill_at_) until = std::min(until, *kill_at_);
  // The remaining processes may end before the next rung.
  if (kill_at_ && (end_.code || end_.signal)) until = std::min(until, now() + sample_every);
  // Shells do not notify a running job that it has the terminal now.
  if (terminal_ && !terminal_->is_raw()) until = std::min(until, now() + terminal_look_every);
  return static_cast<int>(std::clamp<std::int64_t>((until - now()).count(), 0, INT_MAX));
}

void Wrapper::turn() {
  if (now() >= beat_at_) beat();
  if (kill_at_ && now() >= *kill_at_) climb();
  if (kill_at_ && (end_.code || end_.signal) && command_->family().empty()) over_ = true;
  if (over_) return;
  if (terminal_) terminal_->make_raw();
  const bool reads = terminal_ && terminal_->is_raw() && !keys_end_ && keys_.empty();
  std::array<pollfd, 5> fds{{{signals_.get(), POLLIN, 0},
                             {kill_at_ ? -1 : cancel_.get(), POLLIN, 0},
                             {end_.code || end_.signal ? -1 : command_->news_fd(), POLLIN, 0},
                             {reads ? STDIN_FILENO : -1, POLLIN, 0},
                             {keys_.empty() ? -1 : inner_.get(), POLLOUT, 0}}};
  if (poll(fds.data(), fds.size(), poll_timeout()) <= 0) return;
  if (fds[0].revents != 0) handle_signal();
  if (fds[1].revents != 0) cancel();
  if (fds[2].revents != 0) handle_news();
  if (fds[3].revents != 0) read_keys();
  if (fds[4].revents != 0) write_keys();
}

void Wrapper::handle_signal() {
  signalfd_siginfo info{};
  if (read(signals_.get(), &info, sizeof info) != sizeof info) return;
  const auto number = static_cast<int>(info.ssi_signo);
  if (number == SIGCONT || number == SIGWINCH) return claim_terminal();
  // The terminal sends its signals to the whole job.
  if (info.ssi_code == SI_KERNEL && !terminal_) return;
  command_->signal(number);
}

/// The terminal may have come back, or have another size.
void Wrapper::claim_terminal() {
  winsize size{};
  if (!terminal_) {
    ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
    ioctl(inner_.get(), TIOCSWINSZ, &size);
    return command_->signal(SIGWINCH);  // it may have looked before
  }
  terminal_->make_raw();
  size = terminal_->size();
  ioctl(inner_.get(), TIOCSWINSZ, &size);
}

void Wrapper::handle_news() {
  const auto news = command_->news();
  if (!news) return;
  switch (news->kind) {
    case CommandNews::Kind::failed:
      end_.error = "cannot run " + spec_.words[0] + ": " + reason(news->number);
      break;
    case CommandNews::Kind::stopped:
      if (terminal_) stop_with_command();
      break;
    case CommandNews::Kind::lost:
      end_.error = "its leader was killed: nobody knows how it ended";
      end_.code = 1;
      over_ = true;
      break;
    case CommandNews::Kind::exited:
      if (WIFEXITED(news->number)) end_.code = WEXITSTATUS(news->number);
      if (WIFSIGNALED(news->number)) end_.signal = WTERMSIG(news->number);
      over_ = !kill_at_ || command_->family().empty();
      break;
  }
}

/// As the command would have stopped with its job: this job stops instead, until its shell lets it
/// go on.
void Wrapper::stop_with_command() {
  terminal_->restore();
  sigset_t stop;
  sigset_t before;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &stop, &before);
  kill(0, SIGTSTP);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  claim_terminal();
  command_->resume();
}

void Wrapper::read_keys() {
  keys_.resize(keys_bytes);
  const auto count = read(STDIN_FILENO, keys_.data(), keys_.size());
  keys_end_ = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
  keys_.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  write_keys();
}

void Wrapper::write_keys() {
  const auto count = write(inner_.get(), keys_.data(), keys_.size());
  if (count > 0) keys_.erase(0, static_cast<std::size_t>(count));
  if (count < 0 && errno != EAGAIN && errno != EINTR) keys_.clear();
}

void Wrapper::cancel() {
  end_.cancelled = true;
  const auto all = command_->family();
  for (const auto& one : all) {
    send_signal(one, SIGTERM);
    send_signal(one, SIGCONT);
  }
  if (all.empty()) command_->signal(SIGTERM);  // no process is visible here
  kill_at_ = now() + spec_.ladder.terminate;
}

/// Ends what did not end by itself, until nothing is left.
void Wrapper::climb() {
  if (!verified_) verified_ = now() + spec_.ladder.kill_verify;
  const auto left = command_->family();
  for (const auto& one : left) send_signal(one, SIGKILL);
  if (left.empty()) command_->signal(SIGKILL);
  kill_at_ = now() + sample_every;
  const bool has_ended = end_.code || end_.signal;
  if (!has_ended || (!left.empty() && now() < *verified_)) return;
  over_ = true;
}

void Wrapper::beat() {
  beat_at_ = now() + spec_.beat_every;
  reporting_->beat({{"output_lines", static_cast<double>(tally_.lines)},
                    {"output_bytes", static_cast<double>(tally_.bytes)},
                    {"cpu_ms", static_cast<double>(command_->cpu_ms())}});
}

/// Passes on all output of the command, however slow the reader is. Returns false if this process
/// is ended meanwhile.
bool Wrapper::drain() {
  for (auto& pump : pumps_) pump->drain();
  for (auto& pump : pumps_) {
    std::array<pollfd, 2> fds{{{pump->stopped_fd(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    while (poll(fds.data(), fds.size(), -1) < 0 || fds[0].revents == 0) {
      signalfd_siginfo info{};
      if (read(signals_.get(), &info, sizeof info) != sizeof info) continue;
      const auto number = static_cast<int>(info.ssi_signo);
      if (number == SIGHUP || number == SIGINT || number == SIGTERM || number == SIGQUIT) {
        for (auto& one : pumps_) one->give_up();
        return false;
      }
    }
  }
  return true;
}

/// Names what still holds the output, and leaves it to the supervisor. A write error ends the run
/// as it would have ended the command: not with code 0, and not as if a reader had left.
void Wrapper::account_for_output() {
  std::vector<std::string> held;
  for (std::size_t at = 0; at < pumps_.size(); ++at) {
    const auto end = pumps_[at]->end();
    if (end.kind == PumpEnd::Kind::held) held.push_back(streams_[at].origin);
    if (end.kind != PumpEnd::Kind::failed) continue;
    const bool is_silent = end_.code == 0 || end_.signal == SIGPIPE;
    if (is_silent) end_.code = 1;
    if (is_silent) end_.signal.reset();
    if (end_.error.empty())
      end_.error = std::string("the command's standard ") +
                   (streams_[at].to == STDERR_FILENO ? "error" : "output") +
                   " cannot be written: " + reason(end.number);
  }
  if (held.empty()) return;
  end_.holders = holders_of(held);
  for (std::size_t at = 0; at < pumps_.size(); ++at)
    if (pumps_[at]->end().kind == PumpEnd::Kind::held)
      command_->keep(pumps_[at]->extract_source(), streams_[at].to);
}

std::vector<std::string> Wrapper::holders_of(const std::vector<std::string>& origins) const {
  std::vector<std::string> found;
  for (const auto& one : command_->family())
    if (has_open(one.pid, origins)) found.push_back(shown(one));
  return found;
}

}  // namespace watchdog::monitor
