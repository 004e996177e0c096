/// \file
/// How soon a wait notices an outcome, and what it takes until then, beside who polls the file each
/// hundredth of a second.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>
#include <optional>
#include <thread>

#include "bench.h"
#include "store/store.h"
#include "support/temp_dir.h"
#include "watchdog/wait.h"

namespace watchdog::bench {
namespace {

constexpr auto poll_every = std::chrono::milliseconds(10);
constexpr int waiting_seconds = 10;

/// A program whose lines are read; ends with this.
class Program {
 public:
  explicit Program(std::vector<std::string> words) {
    std::array<int, 2> out{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) give_up("no pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
      give_up("cannot start " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(out[1]);
    out_ = out[0];
  }
  ~Program() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(out_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string line() const {
    std::string text;
    for (char c = 0; read(out_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  /// CPU seconds so far.
  [[nodiscard]] double cpu() const {
    clockid_t clock = 0;
    if (clock_getcpuclockid(pid_, &clock) != 0) give_up("the program is gone");
    return seconds_of(clock);
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

class Agents {
 public:
  explicit Agents(const std::filesystem::path& database)
      : store_(must(Store::open({.database = database}))) {}

  void begin(const std::string& session) { say(session, {.kind = ReportKind::start}); }
  void beat(const std::string& session) {
    Report report;
    report.detail = Heartbeats{.source = Source::sidecar};
    say(session, std::move(report));
  }
  /// Returns when it is on disk, and says when its commit began.
  double end(const std::string& session) {
    const double from = seconds_of(CLOCK_MONOTONIC);
    Report report{.kind = ReportKind::end};
    report.detail = Outcome{.reason = "task_complete"};
    say(session, std::move(report));
    return from;
  }

 private:
  void say(const std::string& session, Report report) {
    std::array batches{Batch{.session = session}};
    batches[0].reports.push_back(std::move(report));
    must(must(store_.append(batches))[0]);
  }
  Store store_;
};

/// Looks at the file again and again until the session has ended; then it is so late.
double poll_for_end(const std::filesystem::path& database, const std::string& session) {
  auto reader = must(StoreReader::open(database));
  while (!is_end(must(reader.session(session)).lifecycle)) std::this_thread::sleep_for(poll_every);
  return seconds_of(CLOCK_MONOTONIC);
}

/// Milliseconds from the commit until the library's wait returns, and until the poller knows.
void in_the_library(Table& table) {
  constexpr int rounds = 100;
  const test::TempDir dir;
  const auto database = dir / "bench.db";
  Agents agents(database);
  std::vector<double> waited;
  std::vector<double> polled;
  for (int round = 0; round < rounds; ++round) {
    const auto session = "s" + std::to_string(round);
    agents.begin(session);
    std::atomic<bool> looked = false;
    auto waiter = std::async(std::launch::async, [&] {
      if (!wait({.session = session, .database = database, .seen = [&](const Observed*) {
                   looked = true;
                 }}))
        give_up("the wait failed");
      return seconds_of(CLOCK_MONOTONIC);
    });
    auto poller = std::async(std::launch::async, [&] { return poll_for_end(database, session); });
    while (!looked) std::this_thread::yield();
    // Each round finds them asleep, and the poller anywhere in its sleep.
    std::this_thread::sleep_for(std::chrono::microseconds(30'000 + 1'700 * (round % 6)));
    const double from = agents.end(session);
    waited.push_back((waiter.get() - from) * 1e3);
    polled.push_back((poller.get() - from) * 1e3);
  }
  table.add("wait_file_latency", "ms", median(waited), at_most(20));
  table.add("wait_file_latency_p95", "ms", quantile(waited, 0.95));
  table.add("poll_file_latency", "ms", median(polled));
}

/// Milliseconds from the commit until the command has said so.
double command_latency(Agents& agents, const std::vector<std::string>& where, int rounds) {
  static int number = 0;
  std::vector<double> waited;
  for (int round = 0; round < rounds; ++round) {
    const auto session = "c" + std::to_string(++number);
    agents.begin(session);
    std::vector<std::string> words{WATCHDOG_MONITOR, "wait", session};
    words.insert(words.end(), where.begin(), where.end());
    const Program waiter(words);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    const double from = agents.end(session);
    if (!waiter.line().starts_with(session)) give_up("the command failed");
    waited.push_back(std::max(seconds_of(CLOCK_MONOTONIC) - from, 0.0) * 1e3);
  }
  return median(waited);
}

/// CPU of waiting, in percent of a core, for an agent with a heartbeat a second.
void cost(Table& table, Agents& agents, const std::filesystem::path& database,
          const std::string& url) {
  agents.begin("long");
  const Program in_file({WATCHDOG_MONITOR, "wait", "long", "--db", database});
  const Program on_stream({WATCHDOG_MONITOR, "wait", "long", "--server", url});
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::promise<double> poller_cpu;
  std::thread poller([&] {
    poll_for_end(database, "long");
    poller_cpu.set_value(seconds_of(CLOCK_THREAD_CPUTIME_ID));
  });
  const double file_before = in_file.cpu();
  const double stream_before = on_stream.cpu();
  for (int second = 0; second < waiting_seconds; ++second) {
    agents.beat("long");
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  const auto percent = [](double seconds) { return 100 * seconds / waiting_seconds; };
  const double file = percent(in_file.cpu() - file_before);
  const double stream = percent(on_stream.cpu() - stream_before);
  agents.end("long");
  poller.join();
  table.add("wait_file_cpu", "%", file, at_most(0.1));
  table.add("wait_stream_cpu", "%", stream, at_most(0.1));
  table.add("poll_file_cpu", "%", percent(poller_cpu.get_future().get()));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  using namespace watchdog::bench;
  Table table(argc, argv);
  in_the_library(table);
  const watchdog::test::TempDir dir;
  const auto database = dir / "bench.db";
  Agents agents(database);
  const Program monitor({WATCHDOG_MONITOR, "serve", "--db", database, "--port", "0"});
  const auto first = monitor.line();
  if (!first.starts_with("listening on http://")) give_up("the monitor says: " + first);
  const auto url = first.substr(first.find("http"));
  table.add("wait_command_file_latency", "ms",
            command_latency(agents, {"--db", database.string()}, 40), at_most(20));
  table.add("wait_command_stream_latency", "ms", command_latency(agents, {"--server", url}, 40),
            at_most(5));
  cost(table, agents, database, url);
  return table.exit_code();
}
