#include "mcp/loop.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace watchdog::monitor::mcp {

using StepTime = std::chrono::steady_clock::time_point;

struct LoopThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> steps;
  std::multimap<StepTime, std::function<void()>> later;
  bool stopped = false;
  std::thread thread;

  /// Returns the next step; an empty one: the loop ends.
  std::function<void()> next() {
    std::unique_lock guard(mutex);
    while (!stopped) {
      const auto now = std::chrono::steady_clock::now();
      while (!later.empty() && later.begin()->first <= now)
        steps.push_back(std::move(later.extract(later.begin()).mapped()));
      if (!steps.empty()) {
        auto step = std::move(steps.front());
        steps.pop_front();
        return step;
      }
      if (later.empty()) {
        changed.wait(guard);
      } else {
        const auto until = later.begin()->first;
        changed.wait_until(guard, until);
      }
    }
    return {};
  }
};

LoopThread::LoopThread() : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get()] {
    while (auto step = state->next()) step();
  });
}

LoopThread::~LoopThread() {
  stop();
}

void LoopThread::stop() {
  {
    const std::lock_guard guard(state_->mutex);
    if (std::exchange(state_->stopped, true)) return;
  }
  state_->changed.notify_all();
  state_->thread.join();
  // A step may own what ends other threads, and those may post: not under the lock.
  decltype(state_->steps) steps;
  decltype(state_->later) later;
  {
    const std::lock_guard guard(state_->mutex);
    steps.swap(state_->steps);
    later.swap(state_->later);
  }
}

void LoopThread::post(std::function<void()> step) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->stopped) return;
    state_->steps.push_back(std::move(step));
  }
  state_->changed.notify_all();
}

void LoopThread::after(Millis time, std::function<void()> step) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->stopped) return;
    state_->later.emplace(std::chrono::steady_clock::now() + time, std::move(step));
  }
  state_->changed.notify_all();
}

}  // namespace watchdog::monitor::mcp
