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

#include "store/store_reader.h"

namespace watchdog::monitor {

/// Reads one after another, in order. Waiting reads are dropped with this object. Thread-safe.
class QueryThread {
 public:
  explicit QueryThread(std::filesystem::path database);

  /// `failed` gets why the database cannot be opened; then `work` is not called. It is called too
  /// if no memory is left for `work`.
  void read(std::function<void(StoreReader&)> work, std::function<void(Error)> failed);
  /// Closes the file, once the reading under way is done; it is opened again for the next reading.
  void close();
  /// Returns the reader of the work that this thread does now; null: it is another thread.
  [[nodiscard]] static StoreReader* present_reader() noexcept;

 private:
  struct Reading {
    std::function<void(StoreReader&)> work;
    std::function<void(Error)> failed;
  };
  void run(const std::stop_token& stop);
  void work_on(const Reading& reading);

  std::filesystem::path database_;
  std::mutex mutex_;
  std::condition_variable_any came_;
  std::deque<Reading> waiting_;
  bool stale_ = false;
  std::condition_variable closed_;
  std::optional<StoreReader> reader_;
  std::jthread thread_;
};

}  // namespace watchdog::monitor
