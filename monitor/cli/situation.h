/// \file
/// What was known of a session when it got into trouble, in words for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace watchdog::monitor {

/// Of a transition's situation: what was running, how its process was, and the bounds that held.
/// Lines without indentation, safe for the terminal; none where nothing was written down.
[[nodiscard]] std::vector<std::string> situation_in_words(const nlohmann::json& situation);

}  // namespace watchdog::monitor
