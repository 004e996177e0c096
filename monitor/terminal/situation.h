/// \file
/// A transition's situation in words for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace watchdog::monitor {

/// Returns the lines of a transition's situation: running calls, process, and bounds. Without
/// indentation, safe for the terminal; none if nothing was recorded.
[[nodiscard]] std::vector<std::string> situation_in_words(const nlohmann::json& situation);

}  // namespace watchdog::monitor
