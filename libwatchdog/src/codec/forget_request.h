/// \file
/// A request to erase sessions, as clients send it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A plain value.
struct ForgetRequest {
  std::vector<std::string> sessions{};
  std::optional<WallTime> ended_before{};
  bool force = false;
  bool dry_run = false;
};

/// Reads `{"sessions"?, "endedBefore"?, "force"?, "dryRun"?}`; for a single session the first two
/// have no meaning. An empty text is an empty object. Errors: `malformed`. Thread-safe.
[[nodiscard]] Result<ForgetRequest> forget_request_from_json(std::string_view body);

}  // namespace watchdog
