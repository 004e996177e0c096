/// \file
/// A stop after a time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// Requests a stop after a time, or with an outer one, unless this object ends before.
class TimeLimit {
 public:
  TimeLimit(Millis time, const std::stop_token& outer)
      : thread_([this, time, outer](const std::stop_token& over) {
          const std::stop_callback ring(outer, [this] {
            const std::lock_guard guard(mutex_);
            changed_.notify_all();
          });
          std::unique_lock guard(mutex_);
          changed_.wait_for(guard, over, time, [&] { return outer.stop_requested(); });
          if (!over.stop_requested()) source_.request_stop();
        }) {}
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace watchdog::monitor
