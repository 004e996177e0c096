#include "process/family_end.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "process/process_family.h"

namespace watchdog::monitor {
namespace {

/// Processes that start others faster than they are ended.
constexpr int rounds_max = 10;

/// Why no signal may be sent to these; empty: it may.
std::string refusal_of(const std::vector<ProcessSample>& processes, const WhyNotEnd& why_not) {
  for (const auto& process : processes) {
    auto why = why_not(process);
    if (process.pid == getpid()) why = "it is this monitor";
    if (is_login_shell(process, words_of_process(process.pid))) why = "it is a login shell";
    if (!why.empty()) return "process " + std::to_string(process.pid) + " is not ended: " + why;
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
    // Nothing reports the exit of all: a pidfd reports one, and new descendants can come meanwhile.
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

Result<std::size_t> end_family(const ProcessSample& first, Millis grace, const WhyNotEnd& why_not,
                               const std::stop_token& stop) {
  ProcessFamily family(first.pid, first.start_ticks);
  (void)family.fold(processes_now());
  auto processes = family.running(processes_now());
  if (auto why = refusal_of(processes, why_not); !why.empty())
    return Error{ErrorCode::conflict, std::move(why)};
  const auto count = processes.size();
  if (count == 0) return count;
  if (auto sent = send(processes, SIGTERM); !sent) return sent.error();
  if (left_after(family, grace, stop) == 0) return count;
  for (int round = 0; round < rounds_max; ++round) {
    processes = family.running(processes_now());
    if (processes.empty()) return count;
    if (auto why = refusal_of(processes, why_not); !why.empty())
      return Error{ErrorCode::conflict, std::move(why)};
    if (auto sent = send(processes, SIGKILL); !sent) return sent.error();
    constexpr Millis for_the_kernel{200};
    if (left_after(family, for_the_kernel, {}) == 0) return count;
  }
  return Error{ErrorCode::exhausted, "some processes are not ended"};
}

}  // namespace watchdog::monitor
