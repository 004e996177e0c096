#include "cli/remote_proxy.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "cli/proxied_client.h"

namespace watchdog::monitor {
namespace {

/// The client has closed its end: answers to what is open may take this long.
constexpr Millis last_answers{5'000};

class RemoteProxy final : public ProxiedClient {
 public:
  RemoteProxy(RemoteServer& server, const mcp::CallBook::Options& options, const CallSink& sink)
      : ProxiedClient(options, sink), server_(server) {}

  void to_server(std::string message) override { server_.send(std::move(message)); }

  int run() {
    open_signals();
    while (!code_) turn();
    return *code_;
  }

 private:
  void turn() {
    const bool has_room = to_client_.size() < OutgoingLines::bytes_max;
    std::array<pollfd, 4> files{
        {{.fd = client_ended_ ? -1 : STDIN_FILENO, .events = POLLIN, .revents = 0},
         {.fd = to_client_.size() > 0 ? STDOUT_FILENO : -1, .events = POLLOUT, .revents = 0},
         {.fd = has_room ? server_.news_fd() : -1, .events = POLLIN, .revents = 0},
         {.fd = signals(), .events = POLLIN, .revents = 0}}};
    (void)poll(files.data(), files.size(), timeout());
    if (files[3].revents != 0)
      if (const int number = next_signal()) code_ = 128 + number;
    if (files[1].revents != 0 && !to_client_.write_to(STDOUT_FILENO)) code_ = 0;
    if (files[0].revents != 0) read();
    if (files[2].revents != 0)
      for (auto& news : server_.drain()) accept(std::move(news));
    book_.tick(now());
    flush_reports();
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
        return book_.fail_request(news.key, news.text, news.may_have_run);
      case RemoteNews::Kind::expired:
        // The server refused this one; it may have begun with others.
        book_.fail_request(news.key, "the tool server does not know its session any more", false);
        if (!server_.forget(news.text)) return;
        book_.server_gone("the tool server ended its session", now());
        book_.server_restarted();
    }
  }

  void read() {
    const bool goes_on = read_client([this](std::string line) {
      // Nothing is sent for an empty line.
      if (line.find_first_not_of(" \t\r") != std::string::npos)
        book_.from_client(std::move(line), now());
    });
    if (goes_on) return;
    client_ended_ = true;
    leave_at_ = now() + last_answers;
  }

  RemoteServer& server_;
  Instant leave_at_{};
  std::optional<int> code_;
};

}  // namespace

int run_remote_proxy(RemoteServer& server, const mcp::CallBook::Options& options,
                     const CallSink& sink) {
  return RemoteProxy(server, options, sink).run();
}

}  // namespace watchdog::monitor
