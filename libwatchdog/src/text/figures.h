/// \file
/// Numbers in sentences for people.
#pragma once

#include <cstdint>
#include <string>

#include "watchdog/time.h"

namespace watchdog {

/// `61,440`
[[nodiscard]] std::string grouped(std::int64_t number);
/// `84 s`, `12 min`
[[nodiscard]] std::string span_of(Millis time);
/// `1 look`, `3 looks`
[[nodiscard]] std::string counted_as(std::int64_t number, const char* what);

}  // namespace watchdog
