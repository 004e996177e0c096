#include "wrapper/command.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "wrapper/supervisor.h"

namespace watchdog::monitor {
namespace {

using Kind = SupervisorMessage::Kind;

void order(int channel, Kind kind) {
  const SupervisorMessage message{.kind = kind};
  send(channel, &message, sizeof message, MSG_NOSIGNAL);
}

}  // namespace

Result<Command> Command::prepare(const Launch& launch) {
  const auto refused = [] {
    return Error{ErrorCode::exhausted,
                 "the command is not started: " + std::generic_category().message(errno)};
  };
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return refused();
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    ours.reset();
    lead(launch, theirs.get());
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (supervisor < 0) return refused();
  Command command;
  command.supervisor_ = supervisor;
  command.channel_ = std::move(ours);
  return command;
}

Command::Command(Command&& other) noexcept
    : channel_(std::move(other.channel_)),
      process_(std::move(other.process_)),
      supervisor_(std::exchange(other.supervisor_, -1)),
      pid_(other.pid_),
      cpu_ms_(other.cpu_ms_),
      keeps_(other.keeps_),
      early_(std::move(other.early_)) {}

Command::~Command() {
  if (supervisor_ < 0) return;
  order(channel_.get(), Kind::leave);
  if (keeps_) return;
  while (waitpid(supervisor_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void Command::begin() const {
  order(channel_.get(), Kind::begin);
}

std::optional<CommandNews> Command::news() {
  SupervisorMessage message;
  const auto bytes = recv(channel_.get(), &message, sizeof message, 0);
  if (bytes < 0 && errno == EINTR) return std::nullopt;
  if (bytes <= 0) return CommandNews{};
  switch (message.kind) {
    case Kind::begun:
      pid_ = message.number;
      process_ = FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
      for (const int number : early_) signal(number);
      return std::nullopt;
    case Kind::failed:
      return CommandNews{CommandNews::Kind::failed, message.number};
    case Kind::stopped:
      return CommandNews{CommandNews::Kind::stopped, message.number};
    case Kind::exited:
      return CommandNews{CommandNews::Kind::exited, message.number};
    case Kind::begin:
    case Kind::keep:
    case Kind::leave:
      break;
  }
  return std::nullopt;
}

void Command::signal(int number) {
  if (process_) {
    syscall(SYS_pidfd_send_signal, process_.get(), number, nullptr, 0);
  } else if (pid_ < 0) {
    early_.push_back(number);
  }
}

void Command::resume() const {
  if (pid_ > 0) kill(-pid_, SIGCONT);
}

void Command::keep(FileDescriptor from, int to) {
  SupervisorMessage message{.kind = Kind::keep};
  iovec part{.iov_base = &message, .iov_len = sizeof message};
  const std::array<int, 2> files{from.get(), to};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
  msghdr envelope{};
  envelope.msg_iov = &part;
  envelope.msg_iovlen = 1;
  envelope.msg_control = control.data();
  envelope.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&envelope);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof files);
  std::memcpy(CMSG_DATA(header), files.data(), sizeof files);
  keeps_ = sendmsg(channel_.get(), &envelope, MSG_NOSIGNAL) > 0 || keeps_;
}

std::vector<Descendant> Command::family() const {
  auto all = descendants();
  std::erase_if(all, [this](const Descendant& one) { return one.pid == supervisor_; });
  return all;
}

std::int64_t Command::cpu_ms() {
  // The leader among them: what it reaped is in its own figure.
  std::int64_t sum = 0;
  for (const auto& one : descendants()) sum += one.cpu_ms;
  cpu_ms_ = std::max(cpu_ms_, sum);
  return cpu_ms_;
}

}  // namespace watchdog::monitor
