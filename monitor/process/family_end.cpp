#include "process/family_end.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "process/process_family.h"

namespace watchdog::monitor {
namespace {

/// Processes that start others faster than they are ended.
constexpr int rounds_max = 10;

/// Why none of these may be ended; empty: they may.
std::string refusal_of(const std::vector<ProcessSample>& processes) {
  for (const auto& process : processes) {
    if (process.pid == getpid()) return "this monitor is one of its processes";
    if (is_login_shell(process, words_of_process(process.pid)))
      return "process " + std::to_string(process.pid) +
             " is the shell of somebody who is logged in";
  }
  return {};
}

/// Returns how many are left after at most this time.
std::size_t left_after(ProcessFamily& family, Millis time, const std::stop_token& stop) {
  constexpr Millis look_again{20};
  const auto end = std::chrono::steady_clock::now() + time;
  while (true) {
    const auto all = processes_now();
    (void)family.fold(all);
    const auto left = family.running(all).size();
    if (left == 0 || stop.stop_requested() || std::chrono::steady_clock::now() >= end) return left;
    // A pidfd reports one exit. New descendants can come meanwhile.
    std::this_thread::sleep_for(look_again);
  }
}

Result<void> send(const std::vector<ProcessSample>& processes, int signal) {
  for (const auto& process : processes) {
    if (const int error = send_signal_to(process, signal); error != 0)
      return Error{ErrorCode::exhausted,
                   "process " + std::to_string(process.pid) +
                       " is not ended: " + std::strerror(error)};  // NOLINT: one thread
  }
  return {};
}

}  // namespace

Result<std::size_t> end_family(const ProcessSample& first, Millis grace,
                               const std::stop_token& stop) {
  ProcessFamily family(first.pid, first.start_ticks);
  (void)family.fold(processes_now());
  auto processes = family.running(processes_now());
  if (const auto why = refusal_of(processes); !why.empty())
    return Error{ErrorCode::conflict, "nothing is ended: " + why};
  const auto count = processes.size();
  if (count == 0) return count;
  if (auto sent = send(processes, SIGTERM); !sent) return sent.error();
  if (left_after(family, grace, stop) == 0) return count;
  for (int round = 0; round < rounds_max; ++round) {
    processes = family.running(processes_now());
    if (processes.empty()) return count;
    if (auto sent = send(processes, SIGKILL); !sent) return sent.error();
    constexpr Millis for_the_kernel{200};
    if (left_after(family, for_the_kernel, {}) == 0) return count;
  }
  return Error{ErrorCode::exhausted, "some processes are not ended"};
}

}  // namespace watchdog::monitor
