/// \file
/// How long an agent's hook may wait for a person's answer.
#pragma once

#include <cstdint>

namespace watchdog {

/// A day, in seconds.
inline constexpr std::int64_t hold_seconds_max = 86'400;

}  // namespace watchdog
