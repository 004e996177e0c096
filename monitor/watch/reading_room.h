/// \file
/// Reads on a thread and a connection of its own, so that a long list delays no commit.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "watchdog/store_reader.h"

namespace watchdog::monitor {

/// One after another, in their order. What waits when this goes is not read. Thread-safe.
class ReadingRoom {
 public:
  explicit ReadingRoom(std::filesystem::path database);

  /// `failed` gets why the database cannot be opened; then `work` is not called.
  void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed);
  /// The file was made anew: it is opened again before the next reading.
  void reopen();

 private:
  struct Reading {
    std::function<void(StoreReader&)> work;
    std::function<void(Error)> failed;
  };
  void run(const std::stop_token& stop);

  std::filesystem::path database_;
  std::mutex mutex_;
  std::condition_variable_any came_;
  std::deque<Reading> waiting_;
  bool stale_ = false;
  std::optional<StoreReader> reader_;
  std::jthread thread_;
};

}  // namespace watchdog::monitor
