#include "watch/reading_room.h"

#include <utility>

namespace watchdog::monitor {

ReadingRoom::ReadingRoom(std::filesystem::path database)
    : database_(std::move(database)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void ReadingRoom::read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed) {
  {
    const std::lock_guard guard(mutex_);
    waiting_.push_back({std::move(work), std::move(failed)});
  }
  came_.notify_one();
}

void ReadingRoom::reopen() {
  const std::lock_guard guard(mutex_);
  stale_ = true;
}

void ReadingRoom::run(const std::stop_token& stop) {
  std::unique_lock guard(mutex_);
  while (came_.wait(guard, stop, [this] { return !waiting_.empty(); })) {
    const auto reading = std::move(waiting_.front());
    waiting_.pop_front();
    if (std::exchange(stale_, false)) reader_.reset();
    guard.unlock();
    if (!reader_) {
      auto opened = StoreReader::open(database_);
      if (opened) {
        reader_.emplace(std::move(*opened));
      } else {
        reading.failed(opened.error());
      }
    }
    if (reader_) reading.work(*reader_);
    guard.lock();
  }
}

}  // namespace watchdog::monitor
