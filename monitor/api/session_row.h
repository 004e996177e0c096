/// \file
/// A session in one line, for lists of many: what the progress document says, in short.
#pragma once

#include <string>

#include "api/backend.h"

namespace watchdog::monitor {

/// One answer or snapshot has so many.
inline constexpr int rows_max = 10'000;

/// Of a session in memory. `now` and `wall` are the same moment on both clocks.
[[nodiscard]] std::string session_row(std::string_view id, const Watched& watched, Instant now,
                                      WallTime wall);
/// Of one that the file alone knows: where it is, and how it ended.
[[nodiscard]] std::string session_row(const SessionRow& row, WallTime wall);

/// Of either kind, as it is now.
[[nodiscard]] std::string session_row(const Backend& backend, const SessionRow& row, WallTime wall);

}  // namespace watchdog::monitor
