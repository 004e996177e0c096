/// \file
/// Measures the cost of sending events to listeners, and the delay until a listener has an event.
/// A real monitor sends them; its agents share its file.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "bench.h"
#include "store/store.h"
#include "support/temp_dir.h"

namespace watchdog::bench {
namespace {

constexpr int streams = 200;
constexpr int events_per_second = 1'000;
constexpr int events_at_once = 10;
constexpr int measured_seconds = 4;

/// A monitor of its own; ends with this.
class Server {
 public:
  explicit Server(const std::filesystem::path& database) {
    std::array<int, 2> out{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) give_up("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::array<std::string, 6> words{WATCHDOG_MONITOR, "serve", "--db", database, "--port", "0"};
    std::array<char*, 7> arguments{};
    std::transform(words.begin(), words.end(), arguments.begin(), [](auto& w) { return w.data(); });
    if (posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
      give_up("the monitor does not start");
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    std::string line;
    for (char c = 0; read(out[0], &c, 1) == 1 && c != '\n';) line += c;
    close(out[0]);
    const auto colon = line.rfind(':');
    if (colon == std::string::npos) give_up("the monitor says: " + line);
    port_ = static_cast<std::uint16_t>(std::stoi(line.substr(colon + 1)));
  }
  ~Server() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// CPU seconds that it took so far.
  [[nodiscard]] double cpu() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int field = 3; field < 14; ++field) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }

 private:
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    give_up("cannot connect");
  return fd;
}

int open_stream(std::uint16_t port) {
  const int fd = connect_to(port);
  const std::string request =
      "GET /api/autonomous/stream?include=events HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (write(fd, request.data(), request.size()) < 0) give_up("cannot ask");
  std::string text;
  std::array<char, 4'096> piece{};
  while (text.find("event: snapshot") == std::string::npos) {
    const auto got = read(fd, piece.data(), piece.size());
    if (got <= 0) give_up("there is no stream: " + text);
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return fd;
}

/// Reads many sockets on a thread of its own and forgets what they say.
class Audience {
 public:
  explicit Audience(const std::vector<int>& fds) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (const int fd : fds) {
      epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
      epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    }
    thread_ = std::thread([this] { run(); });
  }
  ~Audience() {
    done_ = true;
    thread_.join();
    close(epoll_);
  }
  Audience(const Audience&) = delete;
  Audience& operator=(const Audience&) = delete;
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void run() {
    std::vector<char> piece(256 * 1024);
    std::array<epoll_event, 64> events{};
    while (!done_) {
      const int count = epoll_wait(epoll_, events.data(), events.size(), 50);
      for (int at = 0; at < count; ++at) {
        const auto got =
            read(events[static_cast<std::size_t>(at)].data.fd, piece.data(), piece.size());
        if (got > 0) bytes_ += static_cast<std::uint64_t>(got);
      }
    }
  }

  int epoll_;
  std::atomic<bool> done_ = false;
  std::atomic<std::uint64_t> bytes_ = 0;
  std::thread thread_;
};

Report change() {
  return {.kind = ReportKind::state_change,
          .name = "step",
          .content = R"({"file":"main.cpp","lines":12})"};
}

/// Calls `ten`, which sends ten events, each hundredth of a second for `seconds` seconds.
void at_pace(int seconds, const std::function<void()>& ten) {
  auto next = std::chrono::steady_clock::now();
  for (int round = 0; round < seconds * events_per_second / events_at_once; ++round) {
    ten();
    next += std::chrono::milliseconds(1'000 * events_at_once / events_per_second);
    std::this_thread::sleep_until(next);
  }
}

/// The monitor's CPU for publishing: what it takes with listeners beyond what it takes without.
void fan_out(Table& table) {
  const test::TempDir dir;
  Store store = must(Store::open({.database = dir / "bench.db"}));
  const Server server(dir / "bench.db");
  const auto append = [&] {
    std::array batches{
        Batch{.session = "s", .reports = std::vector<Report>(events_at_once, change())}};
    must(must(store.append(batches))[0]);
  };
  const auto cpu_of_server = [&] {
    const double before = server.cpu();
    at_pace(measured_seconds, append);
    return (server.cpu() - before) / measured_seconds;
  };
  std::vector<int> reported(streams);
  for (auto& fd : reported) fd = open_stream(server.port());
  double with = 0;
  std::size_t each = 0;
  {
    const Audience audience(reported);
    with = cpu_of_server();
    each = audience.bytes() /
           static_cast<std::uint64_t>(streams * measured_seconds * events_per_second);
  }
  for (const int fd : reported) close(fd);

  // Bare: one send for each event and listener.
  std::vector<int> senders(streams);
  std::vector<int> receivers(streams);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  listen(listener, streams);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  for (int at = 0; at < streams; ++at) {
    receivers[static_cast<std::size_t>(at)] = connect_to(ntohs(address.sin_port));
    senders[static_cast<std::size_t>(at)] = accept(listener, nullptr, nullptr);
    const int on = 1;
    setsockopt(senders[static_cast<std::size_t>(at)], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  double bare = 0;
  {
    const Audience audience(receivers);
    const std::string text(each, 'x');
    const double before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    at_pace(measured_seconds, [&] {
      for (int event = 0; event < events_at_once; ++event) {
        for (const int fd : senders) (void)!send(fd, text.data(), text.size(), MSG_NOSIGNAL);
      }
    });
    bare = (seconds_of(CLOCK_THREAD_CPUTIME_ID) - before) / measured_seconds;
  }
  for (const int fd : senders) close(fd);
  for (const int fd : receivers) close(fd);
  close(listener);
  table.add("stream_fan_out", "cores", {with, bare, with / bare}, at_most(2));
  table.add("stream_fan_out_in_all", "cores", with, at_most(1));
}

/// From the beginning of the commit to the reader, beside a commit to a file that nobody watches
/// and its text through a bare socket. Each round finds everybody asleep, as a change does in life.
void latency(Table& table) {
  constexpr int rounds = 400;
  const test::TempDir dir;
  Store store = must(Store::open({.database = dir / "bench.db"}));
  Store unwatched = must(Store::open({.database = dir / "bare.db"}));
  const Server server(dir / "bench.db");
  const int fd = open_stream(server.port());
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) give_up("no sockets");

  // One thread waits for both sockets, as a listener does.
  std::mutex mutex;
  std::condition_variable came;
  double heard = 0;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::vector<char> piece(65'536);
    std::array<pollfd, 2> fds{pollfd{fd, POLLIN, 0}, pollfd{pair[0], POLLIN, 0}};
    while (!done) {
      if (poll(fds.data(), fds.size(), 50) <= 0) continue;
      for (auto& one : fds) {
        if ((one.revents & POLLIN) != 0) (void)!read(one.fd, piece.data(), piece.size());
      }
      const std::lock_guard guard(mutex);
      heard = seconds_of(CLOCK_MONOTONIC);
      came.notify_one();
    }
  });
  const auto once = [&](Store& where, bool push) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::array batches{Batch{.session = "s", .reports = {change()}}};
    const std::string text(200, 'x');
    {
      const std::lock_guard guard(mutex);
      heard = 0;
    }
    const double from = seconds_of(CLOCK_MONOTONIC);
    must(must(where.append(batches))[0]);
    if (push) (void)!write(pair[1], text.data(), text.size());
    std::unique_lock guard(mutex);
    came.wait(guard, [&] { return heard != 0; });
    return (heard - from) * 1e6;
  };
  std::vector<double> reported;
  std::vector<double> pushed;
  for (int round = 0; round < rounds; ++round) {
    reported.push_back(once(store, false));
    pushed.push_back(once(unwatched, true));
  }
  done = true;
  reader.join();
  for (const int one : {fd, pair[0], pair[1]}) close(one);
  table.add("stream_latency", "us",
            {median(reported), median(pushed), median(reported) / median(pushed)}, at_most(2));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::latency(table);
  watchdog::bench::fan_out(table);
  return table.exit_code();
}
