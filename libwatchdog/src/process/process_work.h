/// \file
/// Whether the processes below another one use CPU or disks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>

#include "watchdog/time.h"

namespace watchdog {

/// Compares looks at all descendants of a process. Use from one thread at a time.
class ProcessWork {
 public:
  /// They are compared from `now` on: what they used before does not count.
  ProcessWork(pid_t ancestor, Millis now);

  /// Looks again. Returns true if they worked since the last look.
  [[nodiscard]] bool look(Millis now);

 private:
  struct Use {
    unsigned long long start_ticks = 0;
    Millis cpu{};
    std::int64_t io_bytes = 0;
  };
  [[nodiscard]] std::map<pid_t, Use> used() const;

  pid_t ancestor_;
  Millis looked_at_;
  std::map<pid_t, Use> used_;
};

}  // namespace watchdog
