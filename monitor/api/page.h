/// \file
/// The plain page at `/`: sessions and their healths, readable without JavaScript.
#pragma once

#include <optional>
#include <vector>

#include "api/message.h"
#include "watchdog/progress.h"
#include "watchdog/store_reader.h"

namespace watchdog::monitor {

struct PageRow {
  SessionRow row;
  Case judged;
  std::optional<Explanation> explained_by;
};

[[nodiscard]] Response sessions_page(const std::vector<PageRow>& sessions, Instant now);

/// A duration as people say it: `3 s`, `12 min`, `5 h`, `2 d`.
[[nodiscard]] std::string spoken(Millis time);

}  // namespace watchdog::monitor
