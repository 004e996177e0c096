#include "wrapper/supervisor.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace watchdog::monitor {
namespace {

using Kind = SupervisorMessage::Kind;

void send_message(int channel, const SupervisorMessage& message) {
  send(channel, &message, sizeof message, MSG_NOSIGNAL);
}

/// Receives a message; the end of the channel counts as `leave`.
SupervisorMessage hear(int channel, bool& is_gone) {
  SupervisorMessage message{.kind = Kind::leave};
  ssize_t bytes = 0;
  do bytes = recv(channel, &message, sizeof message, 0);
  while (bytes < 0 && errno == EINTR);
  is_gone = bytes <= 0;
  return message;
}

[[noreturn]] void become(const Launch& launch, int channel) {
  if (launch.has_terminal) {
    setpgid(0, 0);
    tcsetpgrp(launch.files[0], getpid());
  }
  // Above those that are about to be given, so that none is overwritten before its turn.
  auto files = launch.files;
  for (auto& file : files) file = dup(file);
  for (int number = 0; number < 3; ++number) dup2(files[static_cast<std::size_t>(number)], number);
  for (const int file : files) close(file);
  for (const auto& name : launch.unset) unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
  for (const auto& pair : launch.set)
    putenv(const_cast<char*>(pair.c_str()));  // NOLINT(concurrency-mt-unsafe,cppcoreguidelines-*)
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
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
  while (true) {
    std::array<pollfd, 2> fds{pollfd{channel, POLLIN, 0}, pollfd{signals, POLLIN, 0}};
    poll(fds.data(), fds.size(), -1);
    if (fds[1].revents != 0) {
      signalfd_siginfo info{};
      [[maybe_unused]] const auto bytes = read(signals, &info, sizeof info);
      if (!reap(command, channel)) runs = false;
    }
    if (fds[0].revents == 0) continue;
    if (hear(channel, is_gone).kind != Kind::leave) continue;
    if (is_gone) {
      // Killed: it could do neither itself.
      if (launch.caller_terminal >= 0)
        tcsetattr(launch.caller_terminal, TCSANOW, &launch.caller_terminal_settings);
      if (runs) kill(command, SIGHUP);
    }
    _exit(0);
  }
}

}  // namespace watchdog::monitor
