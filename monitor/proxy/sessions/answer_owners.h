/// \file
/// Which session got which answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "facts/digest.h"

namespace watchdog::monitor {

/// The newest answers by their ids, and the sessions that got them. Thread-safe.
class AnswerOwners {
 public:
  explicit AnswerOwners(std::size_t count_max) : count_max_(count_max) {}

  /// The newest owner of an id counts. An empty id is not remembered.
  void remember(std::string_view answer, const std::string& session) {
    const std::lock_guard guard(mutex_);
    const auto digest = digest_of(answer);
    if (answer.empty() || !owners_.insert_or_assign(digest, session).second) return;
    oldest_first_.push_back(digest);
    if (oldest_first_.size() <= count_max_) return;
    owners_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }

  /// Empty: unknown.
  [[nodiscard]] std::string owner_of(std::string_view answer) const {
    const std::lock_guard guard(mutex_);
    const auto found = owners_.find(digest_of(answer));
    return found == owners_.end() ? std::string() : found->second;
  }

 private:
  const std::size_t count_max_;
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::string> owners_;  ///< Sessions, by digests of ids.
  std::deque<std::uint64_t> oldest_first_;
};

}  // namespace watchdog::monitor
