/// \file
/// Whether the processes below another one use CPU or disks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "watchdog/time.h"

namespace watchdog {

/// Compares looks at the descendants of a process. Use from one thread at a time.
class ProcessWork {
 public:
  /// They are compared from `now` on: what they used before does not count. `started_from`, in
  /// ticks since boot: of the ancestor's own children only those count that it started then or
  /// later, and what is below them.
  ProcessWork(pid_t ancestor, Millis now, unsigned long long started_from = 0);

  /// Looks again. Returns true if they worked since the last look.
  [[nodiscard]] bool look(Millis now);
  /// True if there was none at the last look.
  [[nodiscard]] bool is_empty() const noexcept { return used_.empty(); }

 private:
  struct Use {
    unsigned long long start_ticks = 0;
    Millis cpu{};
    std::int64_t io_bytes = 0;
  };
  [[nodiscard]] std::map<pid_t, Use> used() const;

  pid_t ancestor_;
  unsigned long long started_from_;
  Millis looked_at_;
  std::map<pid_t, Use> used_;
};

}  // namespace watchdog
