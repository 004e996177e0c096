#include "cli/remote_proxy.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <optional>
#include <utility>

#include "cli/message_lines.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t read_bytes_max = 256 * 1024;
/// The client has closed its end: answers to what is open may take this long.
constexpr Millis last_answers{5'000};

class RemoteProxy final : public mcp::CallBookEnds {
 public:
  RemoteProxy(RemoteServer& server, const mcp::CallBook::Options& options, const CallSink& sink)
      : server_(server), sink_(sink), book_(*this, options) {}

  void to_client(std::string message) override { to_client_.add(message); }
  void to_server(std::string message) override { server_.send(std::move(message)); }
  void report(const std::string& session, Report report) override {
    reports_.emplace_back(session, std::move(report));
  }

  int run() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
    signals_ = FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    ::signal(SIGPIPE, SIG_IGN);
    while (!code_) turn();
    return *code_;
  }

 private:
  static Instant now() { return Instant{system_clock().since_boot()}; }

  void turn() {
    const bool has_room = to_client_.size() < OutgoingLines::bytes_max;
    std::array<pollfd, 4> files{
        {{.fd = client_ended_ ? -1 : STDIN_FILENO, .events = POLLIN, .revents = 0},
         {.fd = to_client_.size() > 0 ? STDOUT_FILENO : -1, .events = POLLOUT, .revents = 0},
         {.fd = has_room ? server_.news_fd() : -1, .events = POLLIN, .revents = 0},
         {.fd = signals_.get(), .events = POLLIN, .revents = 0}}};
    (void)poll(files.data(), files.size(), timeout());
    if (files[3].revents != 0) {
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) == sizeof info)
        code_ = 128 + static_cast<int>(info.ssi_signo);
    }
    if (files[1].revents != 0 && !to_client_.write_to(STDOUT_FILENO)) code_ = 0;
    if (files[0].revents != 0) read_client();
    if (files[2].revents != 0)
      for (auto& news : server_.drain()) accept(std::move(news));
    book_.tick(now());
    for (auto& [session, report] : std::exchange(reports_, {}))
      sink_(session, book_.tally().client, std::move(report), book_.open());
    const bool is_done = book_.waiting() == 0 && to_client_.size() == 0;
    if (client_ended_ && (is_done || now() >= leave_at_)) code_ = code_.value_or(0);
  }

  [[nodiscard]] int timeout() const {
    auto wait = book_.next(now());
    if (client_ended_) wait = std::min(wait.value_or(Millis{100}), Millis{100});
    return wait ? static_cast<int>(wait->count() + 1) : -1;
  }

  void accept(RemoteNews news) {
    switch (news.kind) {
      case RemoteNews::Kind::message:
        return book_.from_server(std::move(news.text), now());
      case RemoteNews::Kind::failed:
        return book_.fail_request(news.key, news.text);
      case RemoteNews::Kind::expired:
        if (!server_.forget(news.text)) return;
        book_.server_gone("the tool server ended its session", now());
        book_.server_restarted();
    }
  }

  void read_client() {
    const auto count = ::read(STDIN_FILENO, buffer_.data(), buffer_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const auto accept = [this](std::string line) {
      // Nothing is sent for an empty line.
      if (line.find_first_not_of(" \t\r") != std::string::npos)
        book_.from_client(std::move(line), now());
    };
    if (count <= 0) {
      from_client_.finish(accept);
      client_ended_ = true;
      leave_at_ = now() + last_answers;
      return;
    }
    const auto skipped =
        from_client_.feed({buffer_.data(), static_cast<std::size_t>(count)}, accept);
    for (int at = 0; at < skipped; ++at) to_client(too_long_text());
  }

  RemoteServer& server_;
  const CallSink& sink_;
  mcp::CallBook book_;
  FileDescriptor signals_;
  std::vector<char> buffer_ = std::vector<char>(read_bytes_max);
  MessageLines from_client_;
  OutgoingLines to_client_;
  std::vector<std::pair<std::string, Report>> reports_;
  bool client_ended_ = false;
  Instant leave_at_{};
  std::optional<int> code_;
};

}  // namespace

int run_remote_proxy(RemoteServer& server, const mcp::CallBook::Options& options,
                     const CallSink& sink) {
  return RemoteProxy(server, options, sink).run();
}

}  // namespace watchdog::monitor
