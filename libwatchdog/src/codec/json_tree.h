/// \file
/// Trees of JSON from text and back, in a fraction of the library's time. Results are the
/// library's.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace watchdog {

/// Returns the tree of the text. Nothing: it is not JSON, it is deeper than `json_depth_max`, it
/// may have more than `values_max` values, or it has a byte order mark or a number out of range.
/// The library knows what to say of these. Pure.
[[nodiscard]] std::optional<nlohmann::json> tree_of(std::string_view text, std::size_t values_max);

/// Returns the tree as text without white space, as `dump` does. REQUIRES: a tree that was parsed.
[[nodiscard]] std::string compact(const nlohmann::json& tree);

}  // namespace watchdog
