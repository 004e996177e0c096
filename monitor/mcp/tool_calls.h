/// \file
/// What the tools do, but for `wait`: each asks the HTTP API and makes a result of the answers.
#pragma once

#include <string>

#include "mcp/exchange.h"
#include "mcp/loop.h"

namespace watchdog::monitor::mcp {

/// Returns the result of a tool whose question failed. `about`: the session, or empty.
[[nodiscard]] json answer_error(const Answer& answer, const std::string& about);

/// Answers a call. REQUIRES: misuse_of() accepts the arguments.
void call_tool(Loop& loop, const ExchangePtr& exchange, const std::string& tool,
               const json& arguments);

}  // namespace watchdog::monitor::mcp
