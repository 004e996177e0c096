#include "calls/workers.h"

#include <openssl/crypto.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

namespace watchdog {

Workers::Workers(std::size_t threads_max, std::size_t stack_bytes)
    : threads_max_(std::max<std::size_t>(threads_max, 1)),
      stack_bytes_(std::max<std::size_t>(stack_bytes, 256U << 10U)) {}

Workers::Start Workers::start(std::function<void()> work) {
  std::unique_lock guard(mutex_);
  if (stopping_) return Start::refused;
  if (idle_ <= handed_.size()) {
    if (threads_ >= threads_max_) return Start::busy;
    if (!spawn()) return threads_ == 0 ? Start::refused : Start::busy;
    ++idle_;  // it begins by looking for work
  }
  handed_.push_back(std::move(work));
  guard.unlock();  // the woken thread would only wait for it
  work_came_.notify_one();
  return Start::started;
}

/// REQUIRES: mutex held. std::thread cannot set a stack's size.
bool Workers::spawn() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes_);
  auto* self = new std::shared_ptr<Workers>(shared_from_this());
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    const std::unique_ptr<std::shared_ptr<Workers>> workers(
        static_cast<std::shared_ptr<Workers>*>(given));
    (*workers)->serve();
    return nullptr;
  };
  const bool started = pthread_create(&thread, &attributes, run, self) == 0;
  pthread_attr_destroy(&attributes);
  if (started) {
    ++threads_;
  } else {
    delete self;
  }
  return started;
}

void Workers::serve() {
  std::unique_lock guard(mutex_);
  while (true) {
    work_came_.wait(guard, [&] { return stopping_ || !handed_.empty(); });
    if (handed_.empty()) break;
    auto work = std::move(handed_.front());
    handed_.pop_front();
    --idle_;
    guard.unlock();
    work();
    work = nullptr;
    guard.lock();
    ++idle_;
    for (const auto& waiter : std::exchange(waiting_, {})) {
      if (const auto alive = waiter.lock()) alive->ring();
    }
  }
  // OpenSSL's data of this thread is freed before the thread counts as gone.
  guard.unlock();
  OPENSSL_thread_stop();
  guard.lock();
  --idle_;
  --threads_;
  thread_ended_.notify_all();
}

void Workers::ring_when_free(std::weak_ptr<Wakeup> waiter) {
  {
    const std::lock_guard guard(mutex_);
    if (idle_ <= handed_.size() && threads_ > 0) {
      const bool waits = std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& other) {
        return !other.owner_before(waiter) && !waiter.owner_before(other);
      });
      if (!waits) waiting_.push_back(std::move(waiter));
      return;
    }
  }
  if (const auto alive = waiter.lock()) alive->ring();
}

Workers::Count Workers::count() const {
  const std::lock_guard guard(mutex_);
  return {threads_, idle_ - std::min(idle_, handed_.size())};
}

bool Workers::stop(Millis at_most) {
  std::unique_lock guard(mutex_);
  stopping_ = true;
  work_came_.notify_all();
  return thread_ended_.wait_for(guard, at_most, [&] { return threads_ == 0; });
}

}  // namespace watchdog
