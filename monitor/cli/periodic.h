/// \file
/// Something that is looked at again and again.
#pragma once

#include <functional>
#include <thread>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// Calls `look` on a thread of its own, for the first time after `every`. Its end waits for a look
/// that is under way. A look that throws is tried again.
class Periodic {
 public:
  Periodic(Millis every, std::function<void()> look);

 private:
  std::jthread thread_;
};

}  // namespace watchdog::monitor
