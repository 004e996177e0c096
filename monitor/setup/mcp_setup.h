/// \file
/// The entry of this program among the MCP servers in an agent's configuration.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "setup/hook_setup.h"

namespace watchdog::monitor {

/// All agents whose list of MCP servers is known, with the file of that list.
[[nodiscard]] std::span<const AgentSetup> mcp_setups();

/// True for the forms of mcp_setups(). with_hooks(), without_hooks() and hooks_in() pass them on to
/// the functions here, so an entry is merged and removed as hooks are.
[[nodiscard]] bool is_mcp(HookForm form);

/// Returns the command that starts the server. `token_file`: empty: none. Pure.
[[nodiscard]] std::vector<std::string> mcp_command(const std::string& program,
                                                   const std::string& server,
                                                   const std::string& token_file);

/// Errors: `malformed` (with the line), `invalid` (a member has another type; another server has
/// the name `watchdog`; the file names servers in a form that cannot be edited). Pure, as are the
/// next two.
[[nodiscard]] Result<std::string> with_mcp(const AgentSetup& agent, std::string_view text,
                                           const HookTarget& target);
[[nodiscard]] Result<std::string> without_mcp(const AgentSetup& agent, std::string_view text);
[[nodiscard]] Result<FoundHooks> mcp_in(const AgentSetup& agent, std::string_view text,
                                        const HookTarget& target);

}  // namespace watchdog::monitor
