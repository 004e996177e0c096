/// \file
/// Threads that may never come back.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "calls/wakeup.h"
#include "watchdog/time.h"

namespace watchdog {

/// A bounded number of detached threads. One is free again only when its work returns: what hangs
/// keeps its slot, so that nothing grows, and is never waited for. Held by each of its threads.
/// Thread-safe.
class Workers : public std::enable_shared_from_this<Workers> {
 public:
  Workers(std::size_t threads_max, std::size_t stack_bytes);

  enum class Start : std::uint8_t {
    started,
    busy,     ///< All threads are taken.
    refused,  ///< The system gives no further thread.
  };
  /// `work` must not throw, and must own what it uses.
  Start start(std::function<void()> work);
  /// Rung once, when a thread gets free.
  void ring_when_free(std::weak_ptr<Wakeup> waiter);

  struct Count {
    std::size_t threads = 0;
    std::size_t idle = 0;
  };
  [[nodiscard]] Count count() const;
  /// Ends idle threads, and busy ones when they return; waits at most `at_most`. Returns true if
  /// all ended.
  bool stop(Millis at_most);

 private:
  void serve();
  bool spawn();

  const std::size_t threads_max_;
  const std::size_t stack_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable work_came_;
  std::condition_variable thread_ended_;
  std::deque<std::function<void()>> handed_;  // each to an idle thread
  std::vector<std::weak_ptr<Wakeup>> waiting_;
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  bool stopping_ = false;
};

}  // namespace watchdog
