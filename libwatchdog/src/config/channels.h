/// \file
/// Checks `[alerts]` as a whole.
#pragma once

#include <string>
#include <vector>

#include "config/table.h"
#include "watchdog/settings.h"

namespace watchdog {

/// Something wrong with the value of a key.
struct KeyFault {
  std::string key;
  std::string message;
};

/// No file is read for it. Thread-safe.
[[nodiscard]] std::vector<KeyFault> channel_faults(const AlertSettings& alerts);

}  // namespace watchdog
