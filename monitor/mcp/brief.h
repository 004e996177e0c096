/// \file
/// Documents of the HTTP API, cut to what a model needs.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "watchdog/time.h"

namespace watchdog::monitor::mcp {

/// A result has at most 25,000 tokens. A token of JSON has two bytes or more, hardly ever fewer.
inline constexpr std::size_t result_bytes_max = 50'000;

/// Returns a session's state in short, from its progress document. Pure.
[[nodiscard]] nlohmann::json brief(const nlohmann::json& document, WallTime now);

/// `2026-01-31T12:00:00.000Z`. Pure.
[[nodiscard]] std::string iso_time(WallTime at);

/// Cuts a result to `bytes_max`: the ends of long texts, then of long lists (of `newest_last`, a
/// member, the beginning). A member `cut` says what was cut. Pure.
void bound(nlohmann::json& result, std::size_t bytes_max, const std::string& newest_last = {});

}  // namespace watchdog::monitor::mcp
