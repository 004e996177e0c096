#include "process/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace watchdog {
namespace {

struct Status {
  Descendant process;
  bool ended = false;
  bool below = false;
};

/// The process of this number; `pid` is 0 if there is none.
Status status_of(pid_t pid) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 1'024> line{};
  const auto bytes = read(file, line.data(), line.size() - 1);
  close(file);
  // The name may hold anything, also parentheses and newlines.
  const char* const name = std::strchr(line.data(), '(');
  const char* const after_name = std::strrchr(line.data(), ')');
  if (bytes <= 0 || name == nullptr || after_name == nullptr) return {};
  Status status{.process = {.pid = pid}};
  auto& process = status.process;
  char state = '?';
  long threads = 0;
  unsigned flags = 0;
  std::array<long long, 4> cpu{};  // in ticks; the latter two of children that it has reaped
  // proc(5): fields 3 to 5, 9, 14 to 17, 20 and 22.
  if (std::sscanf(after_name + 1,
                  " %c %d %d %*d %*d %*d %u %*u %*u %*u %*u %lld %lld %lld %lld %*d %*d %ld %*d "
                  "%llu",
                  &state, &process.parent, &process.group, &flags, &cpu[0], &cpu[1], &cpu[2],
                  &cpu[3], &threads, &process.start_ticks) != 10)
    return {};
  process.cpu_ms = (cpu[0] + cpu[1] + cpu[2] + cpu[3]) * 1'000 / sysconf(_SC_CLK_TCK);
  constexpr unsigned exiting = 4;  // PF_EXITING of the kernel's sched.h
  // The first thread of a process may end before the others.
  process.is_ending = threads <= 1 && (flags & exiting) != 0;
  status.ended = (state == 'Z' && threads <= 1) || state == 'X';
  std::copy_n(name + 1, std::min<std::ptrdiff_t>(after_name - name - 1, 15), process.name.data());
  return status;
}

/// In the order of their numbers.
std::vector<Status> all_processes() {
  std::vector<Status> all;
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return all;
  while (const dirent* entry = readdir(folder)) {  // NOLINT(concurrency-mt-unsafe): its own folder
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    if (const auto status = status_of(pid); status.process.pid != 0) all.push_back(status);
  }
  closedir(folder);
  return all;
}

}  // namespace

std::vector<Descendant> descendants() {
  return descendants_of(getpid());
}

std::vector<Descendant> descendants_of(pid_t ancestor) {
  auto all = all_processes();
  const auto is_below = [&](pid_t pid) {
    if (pid == ancestor) return true;
    const auto found = std::ranges::lower_bound(
        all, pid, {}, [](const Status& status) { return status.process.pid; });
    return found != all.end() && found->process.pid == pid && found->below;
  };
  // A child's number may be lower than its parent's.
  for (bool more = true; more;) {
    more = false;
    for (auto& status : all) {
      if (status.below || !is_below(status.process.parent)) continue;
      status.below = true;
      more = true;
    }
  }
  std::vector<Descendant> found;
  for (const auto& status : all)
    if (status.below && !status.ended) found.push_back(status.process);
  return found;
}

std::vector<Descendant> listed_descendants_of(pid_t ancestor) {
  constexpr std::size_t looked_at_max = 4'096;
  bool is_listed = false;
  std::vector<pid_t> pids{ancestor};
  for (std::size_t at = 0; at < pids.size() && at < looked_at_max; ++at) {
    std::error_code gone;
    const auto tasks = "/proc/" + std::to_string(pids[at]) + "/task";
    for (std::filesystem::directory_iterator task(tasks, gone), end; !gone && task != end;
         task.increment(gone)) {
      std::ifstream children(task->path() / "children");
      is_listed |= children.is_open();
      for (pid_t child = 0; children >> child;) pids.push_back(child);
    }
  }
  if (!is_listed) return descendants_of(ancestor);
  std::vector<Descendant> found;
  for (std::size_t at = 1; at < pids.size(); ++at) {
    const auto status = status_of(pids[at]);
    if (status.process.pid != 0 && !status.ended) found.push_back(status.process);
  }
  return found;
}

void send_signal(const Descendant& to, int signal) {
  if (to.parent == getpid()) {
    kill(to.pid, signal);
    return;
  }
  // Somebody else reaps it, so the number may be another's by now.
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, to.pid, 0));
  if (process < 0) return;
  const auto now = status_of(to.pid).process;
  if (now.pid == to.pid && now.start_ticks == to.start_ticks)
    syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0);
  close(process);
}

}  // namespace watchdog
