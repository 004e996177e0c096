#include "api/rate_limit.h"

#include <algorithm>
#include <cmath>

namespace watchdog::monitor {

double RateLimit::left_at(Millis now) const noexcept {
  const auto passed = std::max(now - since_, Millis{0});
  return std::min(at_once_, left_ + per_second_ * static_cast<double>(passed.count()) / 1'000);
}

bool RateLimit::admit(Millis now) noexcept {
  left_ = left_at(now);
  since_ = std::max(since_, now);
  if (left_ < 1 - 1e-6) return false;  // what wait() said, whatever the rounding
  left_ -= 1;
  return true;
}

Millis RateLimit::wait(Millis now, double count) const noexcept {
  const auto missing = count - left_at(now);
  if (missing <= 1e-6) return Millis{0};
  return Millis{static_cast<std::int64_t>(std::ceil(missing / per_second_ * 1'000 - 1e-6))};
}

RateLimit& PeerLimits::of(const std::string& peer, Millis now) {
  if (const auto found = peers_.find(peer); found != peers_.end()) return found->second;
  if (peers_.size() >= peers_max) {
    std::erase_if(peers_, [now](const auto& each) { return each.second.full(now); });
  }
  if (peers_.size() >= peers_max) peers_.clear();
  return peers_.emplace(peer, whole_).first->second;
}

}  // namespace watchdog::monitor
