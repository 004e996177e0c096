/// \file
/// Checks `[alerts]` as a whole.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/table.h"
#include "watchdog/settings.h"

namespace watchdog {

/// Something wrong with the value of a key.
struct KeyFault {
  std::string key;
  std::string message;
};

/// True for 1 to 64 letters, digits, `_` and `-`: a name that a user chooses for a table.
[[nodiscard]] bool is_plain_name(std::string_view name) noexcept;

/// No file is read for it. Thread-safe.
[[nodiscard]] std::vector<KeyFault> channel_faults(const AlertSettings& alerts);

}  // namespace watchdog
