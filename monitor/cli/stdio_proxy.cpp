// One thread with one `poll`. It never blocks: standard output may be shared with others, so it
// keeps its mode, and gets only as much as it surely takes. A side that reads slowly stops the
// reading of the other side, as a pipe would. The server's end is its exit or the end of its
// output. A server that ends before it answered anything ends this program with its code, as it
// would end without the proxy. Later ends start a new process.
#include "cli/stdio_proxy.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "cli/proxied_client.h"
#include "cli/tool_server.h"
#include "facts/process.h"
#include "mcp/proxy/document_lines.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

constexpr Millis sample_every_max{2'000};
constexpr Millis sample_every_min{250};
constexpr Millis leave_after{10'000};  ///< The client is gone, and the server stays.
constexpr Millis kill_wait{5'000};
constexpr Millis restart_first{100};
constexpr Millis restart_max{30'000};
constexpr Millis lived_long{60'000};

class StdioProxy final : public ProxiedClient {
 public:
  StdioProxy(const StdioProxyOptions& options, const CallSink& sink)
      : ProxiedClient(options.book, sink), options_(options) {}

  void to_server(std::string message) override { to_server_.add(message); }

  int run() {
    open_signals();
    if (auto failed = start()) return *failed;
    while (!code_) turn();
    flush_reports();
    return *code_;
  }

 private:
  /// Returns the exit code if the server cannot be started.
  std::optional<int> start() {
    auto started = ToolServer::start(options_.words);
    if (!started) {
      print_error("watchdog: " + started.error().message + "\n");
      return started.error().code == ErrorCode::not_found ? 127 : 126;
    }
    server_.emplace(std::move(*started));
    from_server_.clear();
    documents_.clear();
    started_at_ = now();
    used_.reset();
    sampled_at_ = started_at_;
    return std::nullopt;
  }

  void turn() {
    std::array<pollfd, 6> files{};
    const auto watch = [](bool wanted, int file, short events) {
      return pollfd{.fd = wanted ? file : -1, .events = events, .revents = 0};
    };
    const bool has_server = server_.has_value();
    files[0] =
        watch(!client_ended_ && to_server_.size() < OutgoingLines::bytes_max, STDIN_FILENO, POLLIN);
    files[1] = watch(to_client_.size() > 0, STDOUT_FILENO, POLLOUT);
    files[2] = watch(has_server && to_client_.size() < OutgoingLines::bytes_max,
                     has_server ? server_->output() : -1, POLLIN);
    files[3] =
        watch(has_server && to_server_.size() > 0, has_server ? server_->input() : -1, POLLOUT);
    files[4] = watch(has_server, has_server ? server_->ended() : -1, POLLIN);
    files[5] = watch(true, signals(), POLLIN);
    const int ready = poll(files.data(), files.size(), timeout());
    if (ready < 0 && errno != EINTR) {
      code_ = 1;
      return;
    }
    if (files[5].revents != 0) handle_signal();
    if (files[1].revents != 0) write_client();
    if (files[3].revents != 0) write_server();
    if (files[0].revents != 0)
      client_ended_ =
          !read_client([this](std::string line) { book_.from_client(std::move(line), now()); });
    if (files[2].revents != 0) read_server();
    // All that it wrote before its end is in the pipe.
    const bool is_empty = files[2].fd >= 0 && files[2].revents == 0;
    if (server_ && files[4].revents != 0 && is_empty && server_->has_ended()) server_ended();
    step();
    flush_reports();
  }

  [[nodiscard]] int timeout() const {
    const auto at = now();
    auto wait = book_.next(at);
    const auto earlier = [&](std::optional<Instant> due) {
      if (due) wait = std::min(wait.value_or(Millis::max()), std::max(*due - at, Millis{0}));
    };
    earlier(restart_at_);
    earlier(leave_at_);
    earlier(kill_at_);
    if (book_.lingering() > 0 && options_.kill_after) earlier(at + sample_every_min);
    if (book_.open() > 0 && server_) earlier(sampled_at_ + sample_every());
    if (!wait) return -1;
    return static_cast<int>(std::min<std::int64_t>(wait->count() + 1, INT_MAX));
  }

  void read_server() {
    const auto count = ::read(server_->output(), buffer_.data(), buffer_.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    const auto accept = [this](std::string line) {
      documents_.add(std::move(line),
                     [this](std::string text) { book_.from_server(std::move(text), now()); });
    };
    if (count <= 0) {
      from_server_.finish(accept);
      server_ended();
      return;
    }
    const auto skipped =
        from_server_.feed({buffer_.data(), static_cast<std::size_t>(count)}, accept);
    if (skipped > 0) {
      print_error("watchdog: the tool server sent a message of more than " +
                  std::to_string(mcp::proxied_bytes_max) + " bytes, which is dropped\n");
      book_.fail_request({}, "the tool server sent more than " +
                                 std::to_string(mcp::proxied_bytes_max) + " bytes");
    }
  }

  void write_client() {
    if (to_client_.write_to(STDOUT_FILENO)) return;
    // Nobody reads: the client is gone.
    client_ended_ = true;
    if (!leave_at_) leave_at_ = now() + leave_after;
  }

  void write_server() {
    // It reads no more. Its output is passed on until it ends.
    if (!to_server_.write_to(server_->input())) server_->close_input();
  }

  void handle_signal() {
    const int number = next_signal();
    if (number == 0) return;
    signal_ = number;
    if (!server_) {
      code_ = 128 + signal_;
      return;
    }
    server_->signal(signal_);
    if (!kill_at_) kill_at_ = now() + kill_wait;
  }

  void server_ended() {
    if (!server_->has_ended()) {
      // It closed its output: nothing more comes of it.
      server_->signal(SIGTERM);
      server_->close_input();
      for (int tries = 0; !server_->has_ended() && tries < 100; ++tries) usleep(10'000);
      if (!server_->has_ended()) server_->signal(SIGKILL);
      while (!server_->has_ended()) usleep(1'000);
    }
    const auto words = "the tool server " + server_->end_words();
    const int status = server_->status();
    server_.reset();
    kill_at_.reset();
    to_server_.clear();
    const bool is_over = client_ended_ || signal_ != 0 || book_.tally().answers == 0;
    book_.server_gone(words, now());
    if (is_over) {
      finish(signal_ != 0 ? 128 + signal_ : status);
      return;
    }
    print_error("watchdog: " + words + "; it is started again\n");
    pause_ = now() - started_at_ >= lived_long
                 ? restart_first
                 : std::min(std::max(2 * pause_, restart_first), restart_max);
    restart_at_ = now() + pause_;
  }

  /// Gives the client its last messages, if it takes them.
  void finish(int code) {
    code_ = code;
    for (int tries = 0; to_client_.size() > 0 && tries < 1'000; ++tries) {
      pollfd file{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      if (poll(&file, 1, 10) > 0) write_client();
    }
  }

  /// Does all that is due by time.
  void step() {
    const auto at = now();
    if (code_) return;
    sample(at);
    book_.tick(at);
    if (server_ && client_ended_ && to_server_.size() == 0) {
      server_->close_input();
      if (!leave_at_ && book_.open() == 0) leave_at_ = at + leave_after;
    }
    if (!server_ && client_ended_) return finish(0);
    if (leave_at_ && at >= *leave_at_ && server_ && !kill_at_) {
      server_->signal(SIGTERM);
      kill_at_ = at + kill_wait;
      leave_at_.reset();
    }
    end_stuck(at);
    if (kill_at_ && at >= *kill_at_ && server_) {
      server_->signal(SIGKILL);
      kill_at_.reset();
    }
    if (restart_at_ && at >= *restart_at_) {
      restart_at_.reset();
      if (start()) {
        book_.server_gone("the tool server cannot be started", at);
        pause_ = std::min(2 * pause_, restart_max);
        restart_at_ = at + pause_;
      } else {
        book_.server_restarted();
      }
    }
  }

  /// A server may be ended for a call that was given up only if nothing else is open.
  void end_stuck(Instant at) {
    if (!server_ || !options_.kill_after || book_.lingering() == 0) {
      stuck_since_.reset();
      return;
    }
    if (!stuck_since_) stuck_since_ = at;
    if (kill_at_ || book_.open() > 0 || at - *stuck_since_ < *options_.kill_after) return;
    print_error("watchdog: the tool server still works on a call that was given up; it is ended\n");
    server_->signal(SIGTERM);
    kill_at_ = at + kill_wait;
  }

  /// Several times within a deadline.
  [[nodiscard]] Millis sample_every() const {
    const auto idle = options_.book.idle.value_or(sample_every_max);
    return std::clamp(idle / 4, sample_every_min, sample_every_max);
  }

  /// Do the server's processes work?
  void sample(Instant at) {
    if (!server_ || book_.open() == 0) {
      used_.reset();
      return;
    }
    if (used_ && at - sampled_at_ < sample_every()) return;
    auto use = server_->use();
    if (use && used_) {
      const auto io_bytes = use->io_bytes.value_or(0) - used_->io_bytes.value_or(0);
      if (is_work(use->cpu - used_->cpu, io_bytes, at - sampled_at_)) book_.server_worked(at);
    }
    used_ = std::move(use);
    sampled_at_ = at;
  }

  const StdioProxyOptions& options_;
  std::optional<ToolServer> server_;
  MessageLines from_server_;
  mcp::DocumentLines documents_;
  OutgoingLines to_server_;
  int signal_ = 0;  ///< That this process got.
  std::optional<int> code_;
  Instant started_at_{};
  Instant sampled_at_{};
  std::optional<ProcessUse> used_;
  Millis pause_{};
  std::optional<Instant> restart_at_;
  std::optional<Instant> leave_at_;
  std::optional<Instant> kill_at_;
  std::optional<Instant> stuck_since_;
};

}  // namespace

int run_stdio_proxy(const StdioProxyOptions& options, const CallSink& sink) {
  return StdioProxy(options, sink).run();
}

}  // namespace watchdog::monitor
