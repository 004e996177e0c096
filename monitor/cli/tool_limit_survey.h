/// \file
/// The time limits of the MCP clients of this user.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "setup/tool_limits.h"
#include "text/json_writer.h"

namespace watchdog::monitor {

/// A plain value.
struct PresentLimit {
  ToolLimit limit;
  std::string server{};           ///< Empty: all servers.
  std::optional<Millis> value{};  ///< Nothing: the client's default.
  std::string place{};            ///< The file or variable that sets it; empty: the default.
};

/// Returns the limits of the clients that are set up: their program is on the PATH, or their file
/// of MCP servers exists. Looks at files and the environment; nothing is changed.
[[nodiscard]] std::vector<PresentLimit> survey_tool_limits();
/// Prints them as a table; nothing if no client is set up.
void print_tool_limits();
/// Writes the members `toolLimits` (all that are known) and `toolLimitsHere`.
void write_tool_limits(JsonWriter& out);

}  // namespace watchdog::monitor
