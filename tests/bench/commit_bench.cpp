/// \file
/// How long agents wait for flush() when many of them share one file.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <random>
#include <thread>

#include "bench.h"
#include "support/temp_dir.h"
#include "watchdog/tracker.h"

namespace watchdog::bench {
namespace {

constexpr int agents = 50;
constexpr int changes = 200;
constexpr int pause_max_ms = 100;  // all together: about ten seconds, a thousand commits in each

/// One of the agents, in a process of its own: writes its waiting times in ms to `out`.
int be_agent(const char* database, const char* number, int out) {
  std::mt19937 random(static_cast<unsigned>(std::atoi(number)));
  ProgressTracker tracker({.session = std::string("agent-") + number, .database = database});
  must(tracker.flush());  // opening the file is not what is promised
  std::vector<double> ms;
  for (int i = 0; i < changes; ++i) {
    std::this_thread::sleep_for(Millis{random() % pause_max_ms});  // the load is paced, on purpose
    (void)tracker.state_change("step", R"({"file":"src/parser/lexer.cpp","tests_failing":2})");
    ms.push_back(1e3 * wall_of([&] { must(tracker.flush()); }));
  }
  const auto bytes = ms.size() * sizeof(double);
  return write(out, ms.data(), bytes) == static_cast<ssize_t>(bytes) ? 0 : 2;
}

/// REQUIRES: no store is open in this process.
pid_t start_agent(const std::filesystem::path& database, int number, int out) {
  const auto digits = std::to_string(number);
  std::array<std::string, 4> words{"commit_bench", "--agent", database.string(), digits};
  std::array<char*, 5> arguments{words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                                 nullptr};
  posix_spawn_file_actions_t actions{};
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t pid = -1;
  const int failure =
      posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) give_up("an agent cannot be started");
  return pid;
}

void commit_latency(Table& table) {
  const test::TempDir dir;
  const auto database = dir / "bench.db";
  struct Agent {
    pid_t pid = -1;
    int in = -1;
  };
  std::vector<Agent> all;
  for (int number = 0; number < agents; ++number) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) give_up("no pipe");
    all.push_back({start_agent(database, number, ends[1]), ends[0]});
    close(ends[1]);
  }
  std::vector<double> ms;
  for (const auto& agent : all) {
    // All times of one agent fit into a pipe, so nobody waits for this reader.
    std::array<double, changes> one{};
    std::size_t got = 0;
    while (true) {
      const auto bytes =
          read(agent.in, reinterpret_cast<char*>(one.data()) + got, sizeof one - got);
      if (bytes <= 0) break;
      got += static_cast<std::size_t>(bytes);
    }
    close(agent.in);
    int status = 0;
    if (waitpid(agent.pid, &status, 0) != agent.pid || status != 0 || got != sizeof one)
      give_up("an agent failed");
    ms.insert(ms.end(), one.begin(), one.end());
  }
  table.add("commit_latency_p50", "ms", median(ms));
  table.add("commit_latency_p99", "ms", quantile(ms, 0.99), at_most(20));
  table.add("commit_latency_max", "ms", quantile(ms, 1));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  using namespace watchdog::bench;
  if (argc == 4 && std::string_view(argv[1]) == "--agent")
    return be_agent(argv[2], argv[3], STDOUT_FILENO);
  Table table(argc, argv);
  commit_latency(table);
  return table.exit_code();
}
