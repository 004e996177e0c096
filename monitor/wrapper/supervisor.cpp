// The supervisor waits for orders, for ends of children, and for output that it keeps. It has one
// thread and all signals blocked: a signal to the job is for the command. It outlives the wrapper
// only for the output that the wrapper handed over, which it copies until no writer is left.
#include "wrapper/supervisor.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace watchdog::monitor {
namespace {

using Kind = SupervisorMessage::Kind;

void send_message(int channel, const SupervisorMessage& message) {
  send(channel, &message, sizeof message, MSG_NOSIGNAL);
}

/// Output that is passed on here because the wrapper ends before its writers do.
struct KeptOutput {
  int from = -1;
  int to = -1;
};

/// Receives a message, and the files that come with it; the end of the channel counts as `leave`.
SupervisorMessage hear(int channel, bool& is_gone, KeptOutput* kept = nullptr) {
  SupervisorMessage message{.kind = Kind::leave};
  iovec part{.iov_base = &message, .iov_len = sizeof message};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(KeptOutput))> files{};
  msghdr envelope{};
  envelope.msg_iov = &part;
  envelope.msg_iovlen = 1;
  envelope.msg_control = files.data();
  envelope.msg_controllen = files.size();
  ssize_t bytes = 0;
  do bytes = recvmsg(channel, &envelope, MSG_CMSG_CLOEXEC);
  while (bytes < 0 && errno == EINTR);
  is_gone = bytes <= 0;
  const cmsghdr* const header = CMSG_FIRSTHDR(&envelope);
  if (kept != nullptr && header != nullptr && header->cmsg_len == CMSG_LEN(sizeof *kept))
    std::memcpy(kept, CMSG_DATA(header), sizeof *kept);
  return message;
}

/// Passes on what is there. Returns false if no more can come, or nothing more can be written: then
/// its writers notice that, as they would without this process.
bool pass_on(const KeptOutput& output) {
  static std::array<char, 65'536> piece;
  auto left = read(output.from, piece.data(), piece.size());
  if (left <= 0) return left < 0 && errno == EAGAIN;
  for (const char* at = piece.data(); left > 0;) {
    const auto count = write(output.to, at, static_cast<std::size_t>(left));
    if (count >= 0) {
      at += count;
      left -= count;
    } else if (errno == EAGAIN) {
      pollfd room{output.to, POLLOUT, 0};
      poll(&room, 1, -1);
    } else {
      return false;
    }
  }
  return true;
}

[[noreturn]] void become(const Launch& launch, int channel) {
  if (launch.has_terminal) {
    setpgid(0, 0);
    tcsetpgrp(launch.files[0], getpid());
  }
  // Above those that are about to be given, so that none is overwritten before its turn.
  auto files = launch.files;
  for (auto& file : files) file = dup(file);
  for (int number = 0; number < 3; ++number)
    if (dup2(files[static_cast<std::size_t>(number)], number) < 0) close(number);
  for (const int file : files) close(file);
  for (const auto& name : launch.unset) unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  for (const auto& pair : launch.set)
    putenv(const_cast<char*>(pair.c_str()));  // NOLINT(concurrency-mt-unsafe,cppcoreguidelines-*)
  // This program ignores them, its caller may not.
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    const bool is_ignored = std::ranges::find(launch.ignored, number) != launch.ignored.end();
    std::signal(number, is_ignored ? SIG_IGN : SIG_DFL);
  }
  sigprocmask(SIG_SETMASK, &launch.signals, nullptr);
  std::vector<char*> words;
  for (const auto& word : launch.words)
    words.push_back(const_cast<char*>(word.c_str()));  // NOLINT(cppcoreguidelines-*)
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int cause = errno;
  send_message(channel, {.kind = Kind::failed, .number = cause});
  _exit(cause == ENOENT ? 127 : 126);
}

/// Reaps all ended children, and reports the command's state. Returns false if the command has
/// ended.
bool reap(pid_t command, int channel) {
  bool runs = true;
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    if (pid != command) continue;
    if (WIFSTOPPED(status)) {
      send_message(channel, {.kind = Kind::stopped, .number = WSTOPSIG(status)});
    } else {
      runs = false;
      send_message(channel, {.kind = Kind::exited, .number = status});
    }
  }
  return runs;
}

}  // namespace

void lead(const Launch& launch, int channel) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  bool is_gone = false;
  if (hear(channel, is_gone).kind != Kind::begin || is_gone) _exit(0);
  if (launch.has_terminal) {
    setsid();
    ioctl(launch.files[0], TIOCSCTTY, 0);
  }
  const pid_t command = fork();
  if (command == 0) become(launch, channel);
  if (command < 0) {
    send_message(channel, {.kind = Kind::failed, .number = errno});
    send_message(channel, {.kind = Kind::exited, .number = 126 << 8});
  } else {
    send_message(channel, {.kind = Kind::begun, .number = command});
  }
  // Closes the parent's files, so that their end is noticed.
  const auto after = static_cast<unsigned>(channel) + 1;
  close_range(STDERR_FILENO + 1, after - 2, 0);
  close_range(after, ~0U, 0);
  if (launch.caller_terminal != STDIN_FILENO) close(STDIN_FILENO);

  sigset_t heard;
  sigemptyset(&heard);
  sigaddset(&heard, SIGCHLD);
  const int signals = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
  bool runs = command > 0;
  bool has_left = false;  // the wrapper
  std::vector<KeptOutput> kept;
  while (!has_left || !kept.empty()) {
    std::vector<pollfd> fds{{has_left ? -1 : channel, POLLIN, 0}, {signals, POLLIN, 0}};
    for (const auto& output : kept) {
      fds.push_back({output.from, POLLIN, 0});
      fds.push_back({output.to, 0, 0});  // that its reader is gone
    }
    poll(fds.data(), fds.size(), -1);
    for (std::size_t at = kept.size(); at-- > 0;) {
      const bool is_read = fds[3 + 2 * at].revents == 0;
      if (is_read && (fds[2 + 2 * at].revents == 0 || pass_on(kept[at]))) continue;
      close(kept[at].from);
      close(kept[at].to);
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (fds[1].revents != 0) {
      signalfd_siginfo info{};
      [[maybe_unused]] const auto bytes = read(signals, &info, sizeof info);
      if (!reap(command, channel)) runs = false;
    }
    if (fds[0].revents == 0) continue;
    KeptOutput output;
    switch (hear(channel, is_gone, &output).kind) {
      case Kind::keep:
        if (output.from >= 0) kept.push_back(output);
        break;
      case Kind::leave:
        has_left = true;
        break;
      default:
        break;
    }
    if (!has_left) continue;
    if (is_gone) {
      // Killed: it could do neither itself.
      if (launch.caller_terminal >= 0)
        tcsetattr(launch.caller_terminal, TCSANOW, &launch.caller_terminal_settings);
      if (runs) kill(command, SIGHUP);
      break;
    }
    close_range(STDIN_FILENO, STDERR_FILENO, 0);  // the caller's; the kept ones are their own
  }
  _exit(0);
}

}  // namespace watchdog::monitor
