/// \file
/// Marks that this thread is within a callback of a tracker.
#pragma once

namespace watchdog {

/// Lives while a tracker's callback runs. Use from one thread at a time.
class CallingOut {
 public:
  CallingOut() noexcept { ++depth(); }
  ~CallingOut() { --depth(); }
  CallingOut(const CallingOut&) = delete;
  CallingOut& operator=(const CallingOut&) = delete;

  [[nodiscard]] static bool here() noexcept { return depth() > 0; }

 private:
  static int& depth() noexcept {
    thread_local int callbacks = 0;
    return callbacks;
  }
};

}  // namespace watchdog
