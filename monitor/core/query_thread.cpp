#include "core/query_thread.h"

#include <new>
#include <utility>

namespace watchdog::monitor {
namespace {

thread_local StoreReader* present = nullptr;

}  // namespace

StoreReader* QueryThread::present_reader() noexcept {
  return present;
}

QueryThread::QueryThread(std::filesystem::path database)
    : database_(std::move(database)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void QueryThread::read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) {
  {
    const std::lock_guard guard(mutex_);
    waiting_.push_back({std::move(work), std::move(failed)});
  }
  came_.notify_one();
}

void QueryThread::close() {
  std::unique_lock guard(mutex_);
  stale_ = true;
  came_.notify_one();
  closed_.wait(guard, [this] { return !stale_; });
}

void QueryThread::run(const std::stop_token& stop) {
  std::unique_lock guard(mutex_);
  while (came_.wait(guard, stop, [this] { return stale_ || !waiting_.empty(); })) {
    if (std::exchange(stale_, false)) {
      reader_.reset();
      closed_.notify_all();
      continue;
    }
    const auto reading = std::move(waiting_.front());
    waiting_.pop_front();
    guard.unlock();
    if (!reader_) {
      auto opened = StoreReader::open(database_);
      if (opened) {
        reader_.emplace(std::move(*opened));
      } else {
        reading.failed(opened.error());
      }
    }
    if (reader_) work_on(reading);
    guard.lock();
  }
}

void QueryThread::work_on(const Reading& reading) {
  present = &*reader_;
  try {
    reading.work(*reader_);
  } catch (const std::bad_alloc&) {
    reading.failed({ErrorCode::unavailable, "no memory is left to read that; try again"});
  }
  present = nullptr;
}

}  // namespace watchdog::monitor
