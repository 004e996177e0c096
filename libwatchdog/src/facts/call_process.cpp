#include "facts/call_process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <iterator>

namespace watchdog {
namespace {

/// Clocks of processes and of the store differ by some ticks, and a hook reports a call before it
/// runs.
constexpr Millis margin{300};

Millis kernel_time() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  return Millis{now.tv_sec * 1'000 + now.tv_nsec / 1'000'000};
}

std::int64_t ticks_per_second() {
  static const std::int64_t ticks = std::max<std::int64_t>(sysconf(_SC_CLK_TCK), 1);
  return ticks;
}

/// The time of a core that these have used.
Millis cpu_of(const CallProcesses& processes) {
  Millis used{};
  for (const auto& process : processes) used += process.cpu;
  return used;
}

/// The process and all below it, parents first.
CallProcesses family_of(const ProcessTree& tree, const ProcessSample& first) {
  CallProcesses family{first};
  for (const auto& child : tree.children) {  // parents first
    if (std::ranges::find(family, child.parent, &ProcessSample::pid) != family.end())
      family.push_back(child);
  }
  return family;
}

}  // namespace

bool is_named_in(std::string_view command, std::string_view process) {
  constexpr std::string_view shells[] = {"sh", "bash", "dash", "zsh", "fish"};
  constexpr std::size_t kernel_name_bytes = 15;
  constexpr auto of_names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
  const auto name = process.substr(0, process.find(' '));
  if (name.empty() || std::ranges::find(shells, name) != std::end(shells)) return false;
  for (std::size_t at = 0; at < command.size();) {
    const auto begin = command.find_first_of(of_names, at);
    if (begin == command.npos) return false;
    at = std::min(command.find_first_not_of(of_names, begin), command.size());
    if (command.substr(begin, at - begin).substr(0, kernel_name_bytes) == name) return true;
  }
  return false;
}

Millis age_of(const ProcessSample& process) {
  return kernel_time() - Millis{process.start_ticks * 1'000 / ticks_per_second()};
}

unsigned long long tick_before(Millis ago) {
  const auto then = std::max(kernel_time() - ago, Millis{1'000});
  return static_cast<unsigned long long>(then.count() * ticks_per_second() / 1'000);
}

std::optional<CallProcesses> processes_of_call(const ProcessTree& tree, std::string_view command,
                                               Millis began) {
  std::optional<CallProcesses> found;
  for (const auto& child : tree.children) {
    if (child.parent != tree.root.pid || child.state == 'Z' || age_of(child) > began + margin)
      continue;
    auto family = family_of(tree, child);
    const auto runs_it = [&](const ProcessSample& process) {
      return process.state != 'Z' && is_named_in(command, process.command);
    };
    if (std::ranges::none_of(family, runs_it)) continue;
    if (found) return std::nullopt;
    found = std::move(family);
  }
  return found;
}

bool have_rested(const CallProcesses& before, const CallProcesses& now, Millis time) {
  const auto is_one = [](const ProcessSample& one, const ProcessSample& other) {
    return one.pid == other.pid && one.start_ticks == other.start_ticks;
  };
  return std::ranges::equal(before, now, is_one) && !is_work(cpu_of(now) - cpu_of(before), 0, time);
}

}  // namespace watchdog
