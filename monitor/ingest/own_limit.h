/// \file
/// The time after which an agent's own tool ends a call.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// Of Claude Code's `Bash` and opencode's `bash`, in whose arguments `timeout` is in milliseconds:
/// other agents' tools of these names count seconds, or nothing. Nothing: the call does not say it.
/// Settings of the agent change the limit of such a call, so it is not known. A command that goes
/// on in the background outlives its call.
[[nodiscard]] inline std::optional<Millis> own_limit(std::string_view tool,
                                                     const nlohmann::json* arguments) {
  constexpr std::int64_t week_ms = 604'800'000;
  if ((tool != "Bash" && tool != "bash") || arguments == nullptr || !arguments->is_object())
    return std::nullopt;
  const auto limit = arguments->find("timeout");
  const auto apart = arguments->find("run_in_background");
  if (limit == arguments->end() || !limit->is_number_integer()) return std::nullopt;
  if (apart != arguments->end() && *apart == true) return std::nullopt;
  const auto ms = limit->get<std::int64_t>();
  return ms > 0 && ms <= week_ms ? std::optional(Millis{ms}) : std::nullopt;
}

}  // namespace watchdog::monitor
