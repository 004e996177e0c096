/// \file
/// A transition's situation, and a session's state, in words for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace watchdog::monitor {

/// Returns the lines of a transition's situation: running calls, process, and bounds. Without
/// indentation, safe for the terminal; none if nothing was recorded.
[[nodiscard]] std::vector<std::string> situation_in_words(const nlohmann::json& situation);

/// Returns the state of a session in one line, from its progress document. Safe for the terminal.
[[nodiscard]] std::string situation_line(const nlohmann::json& document);

}  // namespace watchdog::monitor
