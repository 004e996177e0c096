#include "bundle/bundle_worker.h"

#include <utility>

namespace watchdog::monitor {

bool BundleWorker::add(Job job) {
  {
    const std::lock_guard guard(mutex_);
    if (waiting_.size() == waiting_max) return false;
    waiting_.push_back(std::move(job));
    if (!thread_.joinable())
      thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  came_.notify_one();
  return true;
}

void BundleWorker::run(const std::stop_token& stop) {
  while (true) {
    Job job;
    {
      std::unique_lock guard(mutex_);
      came_.wait(guard, stop, [&] { return !waiting_.empty(); });
      if (waiting_.empty()) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    job(stop);
  }
}

}  // namespace watchdog::monitor
