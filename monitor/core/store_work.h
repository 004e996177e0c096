/// \file
/// Work that waits for the store thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "privacy/content.h"
#include "store/store.h"

namespace watchdog::monitor {

/// About what a batch takes in memory.
[[nodiscard]] inline std::size_t batch_weight(const Batch& batch) {
  constexpr std::size_t node = 64;  // of a map, besides its texts
  std::size_t bytes = sizeof(Batch) + text_bytes(batch.spec) + node * batch.spec.labels.size();
  for (const auto& report : batch.reports) bytes += sizeof(Report) + text_bytes(report);
  return bytes;
}

/// A task for the disk, with its callback.
template <class T>
struct StoreWait {
  std::function<void(Result<T>)> done;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::atomic_flag answered = ATOMIC_FLAG_INIT;

  void answer(Result<T> result) {
    if (answered.test_and_set()) return;
    std::exchange(done, {})(std::move(result));  // what it holds is not needed any more
  }
};

struct PendingBatch : StoreWait<Receipt> {
  Batch batch;
  std::size_t bytes = 0;
};

struct PendingWrite : StoreWait<void> {
  std::function<Result<void>(Store&)> work;
};

/// Adds the tasks that came before `limit` and have no answer yet.
template <class Task>
void add_late(const std::vector<std::shared_ptr<Task>>& tasks,
              std::chrono::steady_clock::time_point limit,
              std::vector<std::shared_ptr<Task>>& late) {
  for (const auto& task : tasks)
    if (task->since < limit && !task->answered.test()) late.push_back(task);
}

/// An erasure with its callback. It may take long, which is not a failure.
struct StoreTask {
  Erasure erasure;
  std::function<void(Result<std::vector<std::string>>)> done;
};

}  // namespace watchdog::monitor
