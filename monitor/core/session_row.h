/// \file
/// A session in one line, for lists of many: what the progress document says, in short.
#pragma once

#include <string>

#include "core/backend.h"

namespace watchdog::monitor {

/// The maximum of one answer or snapshot.
inline constexpr int rows_max = 10'000;

/// Of a session in memory. `now` and `wall` are the same moment on both clocks.
[[nodiscard]] std::string session_row(std::string_view id, const Watched& watched, Instant now,
                                      WallTime wall);
/// Of a session that only the file knows: its state, or its end.
[[nodiscard]] std::string session_row(const SessionRow& row, WallTime wall);

/// Of either kind, as it is now.
[[nodiscard]] Result<std::string> session_row(Backend& backend, StoreReader& reader,
                                              const SessionRow& row, WallTime wall);

}  // namespace watchdog::monitor
