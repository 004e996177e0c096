/// \file
/// A thread that makes bundles. It may wait for git and for /proc, so that no other thread does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "bundle/kept_looks.h"

namespace watchdog::monitor {

/// Runs one job after the other, in order. The thread begins with the first job. Thread-safe.
class BundleWorker {
 public:
  /// Runs on the thread. It must not throw, and it ends soon after a stop.
  using Job = std::function<void(const std::stop_token& stop)>;
  static constexpr std::size_t waiting_max = 8;  ///< Jobs that wait, at most.

  BundleWorker() = default;
  /// Asks for a stop, and runs all jobs that wait to their end.
  ~BundleWorker() = default;
  BundleWorker(const BundleWorker&) = delete;
  BundleWorker& operator=(const BundleWorker&) = delete;

  /// Returns true if the job will run; false: too many wait.
  [[nodiscard]] bool add(Job job);

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any came_;
  std::deque<Job> waiting_;
  std::jthread thread_;  ///< The last member: it uses the others until it ends.
};

/// How bundles are made.
struct Bundles {
  bool asks_git = true;                ///< Constant once requests come.
  std::shared_ptr<KeptLooks> looks{};  ///< Likewise; null: none are kept.
  BundleWorker worker{};
};

}  // namespace watchdog::monitor
