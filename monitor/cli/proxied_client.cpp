#include "cli/proxied_client.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "terminal/output.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {

void ProxiedClient::open_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  signals_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  ::signal(SIGPIPE, SIG_IGN);
}

void ProxiedClient::tell(const std::string& words) {
  print_error("watchdog: " + terminal_text(words) + "\n");
}

int ProxiedClient::next_signal() const {
  signalfd_siginfo info{};
  const bool is_there = ::read(signals_.get(), &info, sizeof info) == sizeof info;
  return is_there ? static_cast<int>(info.ssi_signo) : 0;
}

bool ProxiedClient::read_client(const std::function<void(std::string)>& accept) {
  const auto count = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (count <= 0) {
    from_client_.finish(accept);
    return false;
  }
  const auto skipped = from_client_.feed({buffer_.data(), static_cast<std::size_t>(count)}, accept);
  for (int at = 0; at < skipped; ++at) to_client(too_long_text());
  return true;
}

void ProxiedClient::flush_reports() {
  for (auto& [owner, report] : std::exchange(reports_, {}))
    sink_(owner, book_.tally().client, std::move(report), book_.open());
}

}  // namespace watchdog::monitor
