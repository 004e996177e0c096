/// \file
/// Wakes a thread that waits for several things at once.
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "watchdog/time.h"

namespace watchdog {

/// A notification that stays until it is received. Thread-safe.
struct Wakeup {
  void ring() noexcept {
    {
      const std::lock_guard guard(mutex);
      rung = true;
    }
    changed.notify_one();
  }

  /// Returns when it rings, or after `at_most` of real time; true if it rang.
  bool wait(Millis at_most) {
    std::unique_lock guard(mutex);
    changed.wait_for(guard, at_most, [&] { return rung; });
    return std::exchange(rung, false);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool rung = false;
};

}  // namespace watchdog
