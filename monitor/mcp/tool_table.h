/// \file
/// The tools that a client can call, and what their arguments may be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mcp/rpc.h"

namespace watchdog::monitor::mcp {

/// Returns the list of tools as the protocol has it. `has_session`: reports without a session are
/// about the session of this process. Pure.
[[nodiscard]] json tool_list(Revision revision, bool has_session);

/// Returns the schema of a tool's arguments; null: there is no such tool. Pure.
[[nodiscard]] json schema_of(std::string_view tool, bool has_session);

/// Returns why a tool may not be called with these arguments; nothing: it may. Pure.
[[nodiscard]] std::optional<std::string> misuse_of(const json& schema, const json& arguments);

}  // namespace watchdog::monitor::mcp
