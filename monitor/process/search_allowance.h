/// \file
/// How much time searches may take: a share of all time, and what a quiet time saved.
#pragma once

#include <algorithm>
#include <chrono>

namespace watchdog::monitor {

/// Limits work that must not slow down what it is for, such as looks into /proc. Time that was not
/// used is saved, up to `saved_max`, so rare searches are never refused. A plain value; needs outer
/// locking.
class SearchAllowance {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Span = std::chrono::steady_clock::duration;

  static constexpr int share = 20;  ///< Searches get one part in this many of the time.
  static constexpr Span saved_max = std::chrono::milliseconds(500);

  /// True if a search may begin.
  [[nodiscard]] bool allows(Time now) {
    if (asked_ != Time{} && now > asked_)
      saved_ = std::min<Span>(saved_max, saved_ + (now - asked_) / share);
    asked_ = now;
    return saved_ > Span::zero();
  }

  /// `used`: the processor time of a search. Its wall time would count other programs' work, too.
  void spend(Span used) { saved_ -= used; }

 private:
  Span saved_ = saved_max;
  Time asked_{};
};

}  // namespace watchdog::monitor
