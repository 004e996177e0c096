/// \file
/// When rows of changed sessions are made for those who listen.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "core/feed.h"

namespace watchdog::monitor {

/// Allows rows ten times a second. Where making them takes long, it allows them less often, so that
/// they take at most a twentieth of the time; but not after a change of health. `add` may be
/// called from any thread, the others by one.
class RowPace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] Time due(Feed::Pending pending) const {
    return began_ + (pending == Feed::Pending::urgent ? every_min : every_.load());
  }
  void begin(Time now) { began_ = now; }
  void add(std::chrono::steady_clock::duration time) {
    every_ = std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(share * time),
                        every_min, every_max);
  }

 private:
  static constexpr std::chrono::milliseconds every_min{100};
  static constexpr std::chrono::milliseconds every_max{1'000};
  static constexpr int share = 20;

  Time began_{};
  std::atomic<std::chrono::milliseconds> every_{every_min};
};

}  // namespace watchdog::monitor
