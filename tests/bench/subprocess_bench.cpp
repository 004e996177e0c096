/// \file
/// What it costs to run a program under supervision, beside one that nobody supervises.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "bench.h"
#include "watchdog/subprocess.h"

namespace watchdog::bench {
namespace {

constexpr int starts = 100;
constexpr double gibibyte = 1U << 30U;

pid_t spawn(std::vector<std::string> words, int out) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t pid = -1;
  if (posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
    give_up("cannot run " + words[0]);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/// Milliseconds from the start of a program that does nothing until its end is known.
void start_to_end(Table& table) {
  const auto supervised = [] {
    return 1e3 / starts * wall_of([] {
             for (int start = 0; start < starts; ++start)
               if (must(run_process({.argv = {"/bin/true"}})).code != 0)
                 give_up("/bin/true failed");
           });
  };
  const auto bare = [] {
    return 1e3 / starts * wall_of([] {
             for (int start = 0; start < starts; ++start)
               waitpid(spawn({"/bin/true"}, -1), nullptr, 0);
           });
  };
  table.add("spawn", "ms", by_turns(15, supervised, bare), at_most(5));
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Of a gibibyte that a program writes, as the reader sees it; and how much memory that takes.
void output(Table& table) {
  const std::vector<std::string> words{"head", "-c", "1G", "/dev/zero"};
  long grown_kib = 0;
  const auto supervised = [&] {
    const auto before = peak_kib();
    const auto seconds = wall_of([&] {
      if (must(run_process({.argv = words})).output_bytes != static_cast<std::uint64_t>(gibibyte))
        give_up("output is missing");
    });
    grown_kib = std::max(grown_kib, peak_kib() - before);
    return gibibyte / 1e6 / seconds;
  };
  const auto bare = [&] {
    return gibibyte / 1e6 / wall_of([&] {
             std::array<int, 2> ends{};
             if (pipe2(ends.data(), O_CLOEXEC) != 0) give_up("pipe");
             const pid_t pid = spawn(words, ends[1]);
             close(ends[1]);
             std::string piece(128 * 1'024, '\0');  // as cat has it
             while (read(ends[0], piece.data(), piece.size()) > 0) continue;
             close(ends[0]);
             waitpid(pid, nullptr, 0);
           });
  };
  table.add("output", "MB/s", by_turns(9, supervised, bare), at_least(0.5));
  table.add("output_memory", "MB", static_cast<double>(grown_kib) * 1'024 / 1e6, at_most(4));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  setenv("WATCHDOG_EXEC", WATCHDOG_EXEC_BUILT, 1);  // NOLINT(concurrency-mt-unsafe): one thread
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::start_to_end(table);
  watchdog::bench::output(table);
  return table.exit_code();
}
