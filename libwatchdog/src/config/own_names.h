/// \file
/// Settings below a name that the user chooses, such as a channel of alerts.
#pragma once

#include <vector>

#include "watchdog/settings.h"

namespace watchdog {

/// Returns these settings in the order of their table. In `key`, NAME stands for the name:
/// `alerts.channels.NAME.url`. They have no default, variable or flag here. Thread-safe.
[[nodiscard]] std::vector<SettingInfo> settings_of_own_names();

}  // namespace watchdog
