#include "process/marked_processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "process/descriptor.h"

namespace watchdog {
namespace {

constexpr std::size_t environment_bytes_max = 4U << 20U;

std::string contents_of(pid_t pid, const char* name) {
  const auto path = "/proc/" + std::to_string(pid) + "/" + name;
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16'384> bytes{};
  while (file && text.size() < environment_bytes_max) {
    const auto count = read(file.get(), bytes.data(), bytes.size());
    if (count <= 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

/// `variable` between two NULs. The environment of a process that ended is empty, reaped or not.
bool has(pid_t pid, const std::string& variable) {
  return ('\0' + contents_of(pid, "environ") + '\0').find(variable) != std::string::npos;
}

std::vector<pid_t> processes_with(const std::string& variable) {
  std::vector<pid_t> found;
  std::error_code trouble;
  std::filesystem::directory_iterator entry("/proc", trouble);
  for (const std::filesystem::directory_iterator end; !trouble && entry != end;
       entry.increment(trouble)) {
    const std::string name = entry->path().filename();
    pid_t pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid > 0 && pid != getpid() && has(pid, variable)) found.push_back(pid);
  }
  return found;
}

void kill_if_marked(pid_t pid, const std::string& variable) {
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // Looked at again: only now its number cannot become another's.
  if (process && has(pid, variable))
    syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

}  // namespace

MarkedEnd end_marked(std::string_view mark, Millis at_most) {
  std::string variable(1, '\0');
  variable.append(mark_variable).append("=").append(mark).append(1, '\0');
  const auto until = system_clock().since_boot() + at_most;
  auto marked = processes_with(variable);
  MarkedEnd end;
  for (const auto pid : marked) {
    auto name = contents_of(pid, "comm");
    if (name.ends_with('\n')) name.pop_back();
    end.found.push_back({pid, std::move(name)});
  }
  // A process that is about to become another program has no environment for a moment. A look may
  // also miss a fork. So one look that finds nothing is not enough.
  for (int pause_ms = 1, clean = marked.empty() ? 1 : 0; clean < 2;
       pause_ms = std::min(2 * pause_ms, 20)) {
    for (const auto pid : marked) kill_if_marked(pid, variable);
    if (system_clock().since_boot() >= until) break;
    poll(nullptr, 0, pause_ms);
    marked = processes_with(variable);
    clean = marked.empty() ? clean + 1 : 0;
  }
  end.left = marked.size();
  return end;
}

}  // namespace watchdog
