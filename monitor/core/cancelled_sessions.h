/// \file
/// Which sessions must get no further answer of their model.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "watchdog/report.h"

namespace watchdog::monitor {

/// Cancelled sessions that have not begun again since, as known from the store's answers to
/// reports. Thread-safe.
class CancelledSessions {
 public:
  /// Above this some are forgotten: their agents receive the cancel with a later answer.
  static constexpr std::size_t sessions_max = 10'000;

  /// Takes the store's answer to a report of the session. Costs next to nothing while no session is
  /// cancelled.
  void learn(const std::string& session, const Directive& directive) {
    if (!directive.cancel && !any()) return;
    const std::lock_guard guard(mutex_);
    if (!directive.cancel) {
      sessions_.erase(session);
    } else {
      if (sessions_.size() >= sessions_max && !sessions_.contains(session))
        sessions_.erase(sessions_.begin());
      sessions_.insert_or_assign(session, *directive.cancel);
    }
    any_ = !sessions_.empty();
  }

  [[nodiscard]] bool any() const noexcept { return any_; }

  [[nodiscard]] std::optional<CancelRequest> find(const std::string& session) const {
    if (!any()) return std::nullopt;
    const std::lock_guard guard(mutex_);
    const auto found = sessions_.find(session);
    return found == sessions_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, CancelRequest> sessions_;
  std::atomic<bool> any_{false};
};

}  // namespace watchdog::monitor
