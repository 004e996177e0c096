/// \file
/// All descendants of a process. The helper program, small and statically linked, uses this header
/// too: no streams.
#pragma once

#include <sys/types.h>

#include <array>
#include <vector>

namespace watchdog {

/// A process at one moment. A plain value.
struct Descendant {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  unsigned long long start_ticks = 0;  ///< Distinguishes it from a later process with the same pid.
  bool is_ending = false;              ///< Its program has ended, and may have closed its files.
  long long cpu_ms = 0;                ///< CPU time of it, and of the children that it reaped.
  std::array<char, 16> name{};         ///< The name that it chose, any bytes; ends with a NUL.
};

/// Returns all living descendants of this process, without zombies. Reads every process of the
/// machine: some microseconds each. Thread-safe.
[[nodiscard]] std::vector<Descendant> descendants();
/// The same of another process.
[[nodiscard]] std::vector<Descendant> descendants_of(pid_t ancestor);

/// The same by the kernel's lists of children, which takes as long as there are some: one that
/// comes or goes meanwhile may be missing. Without such lists it is the same.
[[nodiscard]] std::vector<Descendant> listed_descendants_of(pid_t ancestor);

/// Sends a signal to exactly this process, never to a later one with the same pid. REQUIRES: this
/// process has reaped no child since it was seen. Thread-safe.
void send_signal(const Descendant& to, int signal);

}  // namespace watchdog
