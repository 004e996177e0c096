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

/// Returns the tree of the text. Returns nothing if it is not JSON, is deeper than
/// `json_depth_max`, may have more than `values_max` values, or has a byte order mark or a number
/// out of range. Let the library read such a text: it names the error. Pure.
[[nodiscard]] std::optional<nlohmann::json> tree_of(std::string_view text, std::size_t values_max);

/// Returns the tree as text without white space, as `dump` does. REQUIRES: a tree that was parsed.
[[nodiscard]] std::string compact(const nlohmann::json& tree);

}  // namespace watchdog
