/// \file
/// The queue of the store thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/store_work.h"

namespace watchdog::monitor {

/// Holds what waits for the store thread, and what that thread has in hand: claimed, and not yet
/// answered. Any thread may add work and ask; only the store thread claims and settles.
class StoreQueue {
 public:
  using Batches = std::vector<std::shared_ptr<PendingBatch>>;
  using Writings = std::vector<std::shared_ptr<PendingWrite>>;

  /// `bytes_max`: of all batches that have no answer. One batch always has room.
  explicit StoreQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Returns false without room; the batch is then not queued.
  [[nodiscard]] bool add(const std::shared_ptr<PendingBatch>& batch) {
    const std::lock_guard guard(mutex_);
    if (bytes_ != 0 && bytes_ + batch->bytes > bytes_max_) return false;
    bytes_ += batch->bytes;
    batches_.push_back(batch);
    return true;
  }
  void add(std::shared_ptr<PendingWrite> writing) {
    const std::lock_guard guard(mutex_);
    writings_.push_back(std::move(writing));
  }
  void add(StoreTask task) {
    const std::lock_guard guard(mutex_);
    tasks_.push_back(std::move(task));
  }
  /// Bytes of all batches that have no answer.
  [[nodiscard]] std::size_t bytes() const {
    const std::lock_guard guard(mutex_);
    return bytes_;
  }
  /// Lets `is_over` become true once nothing waits.
  void stop() {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  [[nodiscard]] bool is_over() const {
    const std::lock_guard guard(mutex_);
    return stopping_ && batches_.empty() && writings_.empty() && tasks_.empty();
  }

  /// Takes the waiting batches in hand. REQUIRES: those before are settled.
  const Batches& claim_batches() {
    const std::lock_guard guard(mutex_);
    batches_in_hand_.swap(batches_);
    return batches_in_hand_;
  }
  /// Gives the batches in hand back to be answered. They do not count any more.
  [[nodiscard]] Batches settle_batches() {
    const std::lock_guard guard(mutex_);
    for (const auto& batch : batches_in_hand_) bytes_ -= batch->bytes;
    return std::exchange(batches_in_hand_, {});
  }
  /// Takes the waiting writings in hand, beside those that are there.
  const Writings& claim_writings() {
    const std::lock_guard guard(mutex_);
    writings_in_hand_.insert(writings_in_hand_.end(), writings_.begin(), writings_.end());
    writings_.clear();
    return writings_in_hand_;
  }
  void settle_writings() {
    const std::lock_guard guard(mutex_);
    writings_in_hand_.clear();
  }
  [[nodiscard]] std::vector<StoreTask> claim_tasks() {
    const std::lock_guard guard(mutex_);
    return std::exchange(tasks_, {});
  }

  /// Returns the batches and writings from before `limit` that have no answer yet, in hand or not.
  [[nodiscard]] std::pair<Batches, Writings> late(
      std::chrono::steady_clock::time_point limit) const {
    std::pair<Batches, Writings> found;
    const std::lock_guard guard(mutex_);
    for (const auto* batches : {&batches_in_hand_, &batches_})
      add_late(*batches, limit, found.first);
    for (const auto* writings : {&writings_in_hand_, &writings_})
      add_late(*writings, limit, found.second);
    return found;
  }

 private:
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  Batches batches_;
  Batches batches_in_hand_;
  Writings writings_;
  Writings writings_in_hand_;
  std::vector<StoreTask> tasks_;
  std::size_t bytes_ = 0;
  bool stopping_ = false;
};

}  // namespace watchdog::monitor
