/// \file
/// Asks a tool server for progress on behalf of a client that did not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace watchdog::monitor::mcp {

/// Returns the text of a `tools/call` with `_meta.progressToken` in its parameters. All other bytes
/// stay as they are. Nothing: the text has no parameters, or names them in a form that two readers
/// could understand differently. `token`: letters, digits and `-`. Pure.
[[nodiscard]] std::optional<std::string> with_progress_token(std::string_view text,
                                                             std::string_view token);

}  // namespace watchdog::monitor::mcp
