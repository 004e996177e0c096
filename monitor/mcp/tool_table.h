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

/// Returns whether to list a tool for a client with this access, as /api/access says it: its token
/// permits the tool. Without a token all are listed, and calls say which token is missing. Null
/// access is unknown: all are listed. Pure.
[[nodiscard]] bool is_offered(std::string_view tool, const json& access);

/// Returns whether the access may have the scope; true if it is unknown. Pure.
[[nodiscard]] bool permits(const json& access, std::string_view scope);

/// True for tools that stop sessions or calls. Pure.
[[nodiscard]] bool stops_something(std::string_view tool);

/// Returns why a tool may not be called with these arguments; nothing: it may. Pure.
[[nodiscard]] std::optional<std::string> misuse_of(const json& schema, const json& arguments);

}  // namespace watchdog::monitor::mcp
