/// \file
/// A clock that stands still until a test moves it.
#pragma once

#include <atomic>
#include <string>

#include "watchdog/time.h"

namespace watchdog::test {

/// Thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::string boot = "manual") : boot_(std::move(boot)) {}
  Millis since_boot() const noexcept override { return Millis{ms_.load()}; }
  WallTime wall() const noexcept override {
    return WallTime{Millis{1'700'000'000'000 + ms_.load() + wrong_ms_.load()}};
  }
  std::string boot_id() const override { return boot_; }

  void advance(Millis by) { ms_ += by.count(); }
  /// The wall clock shows so much too much from now on.
  void set_wrong(Millis by) { wrong_ms_ = by.count(); }

 private:
  std::string boot_;
  std::atomic<std::int64_t> ms_{1'000'000};
  std::atomic<std::int64_t> wrong_ms_{0};
};

}  // namespace watchdog::test
