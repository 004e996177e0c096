/// \file
/// Everything that a process started, and what these started. Also of the helper program, which is
/// linked statically and small: no streams.
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
  unsigned long long start_ticks = 0;  ///< Tells it from a later one of the same number.
  long long cpu_ms = 0;         ///< That it has used, and those of its children that it reaped.
  std::array<char, 16> name{};  ///< Whatever bytes it chose; ends with a NUL.
};

/// All that live now below this process, those that ended and were not reaped left out. Looks at
/// every process of the machine: some microseconds each. Thread-safe.
[[nodiscard]] std::vector<Descendant> descendants();

/// Sends a signal to exactly this process, and to none that got its number later.
/// REQUIRES: this process has reaped no child since it was seen. Thread-safe.
void send_signal(const Descendant& to, int signal);

}  // namespace watchdog
