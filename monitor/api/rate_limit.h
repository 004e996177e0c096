/// \file
/// A limit on how often something may happen.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// A token bucket, full at the start. The caller passes the time since some fixed moment; if it
/// runs backwards it counts as unchanged. A plain value.
class RateLimit {
 public:
  RateLimit(double per_second, double at_once) noexcept
      : per_second_(per_second), at_once_(at_once), left_(at_once) {}

  /// False: not now.
  [[nodiscard]] bool admit(Millis now) noexcept;
  /// Until the next `count` are admitted at once.
  [[nodiscard]] Millis wait(Millis now, double count = 1) const noexcept;
  /// True if it is as at the beginning.
  [[nodiscard]] bool full(Millis now) const noexcept { return left_at(now) >= at_once_; }

 private:
  [[nodiscard]] double left_at(Millis now) const noexcept;

  double per_second_;
  double at_once_;
  double left_;
  Millis since_{};
};

/// The same for each of many addresses. Use from one thread at a time.
class PeerLimits {
 public:
  PeerLimits(double per_second, double at_once) noexcept : whole_(per_second, at_once) {}

  /// The limit of an address. Valid until the next call.
  [[nodiscard]] RateLimit& of(const std::string& peer, Millis now);
  [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }

 private:
  RateLimit whole_;
  std::unordered_map<std::string, RateLimit> peers_;
};

/// Addresses that are remembered at most; beyond it those that did nothing for long are forgotten,
/// and if there are none, all.
inline constexpr std::size_t peers_max = 10'000;

}  // namespace watchdog::monitor
