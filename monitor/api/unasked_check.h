/// \file
/// About which sessions the monitor asks a model without being asked to.
#pragma once

#include "watchdog/session.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// The label of a session that says which model server its agent uses: `https://HOST[:PORT]`. The
/// proxy sets it; agents that report themselves may.
inline constexpr std::string_view server_label = "server";

/// True if the monitor may send the agent's reports to a model for checks without being asked. The
/// settings must allow checks on suspicion. They must also name a server for checks, or share the
/// agent's. Otherwise the model's server must be in this network (http), or be the hosted one
/// (https) that this agent uses anyway. On a hosted server, prompts do not displace each other.
/// Pure.
[[nodiscard]] bool may_ask_unasked(const Settings& settings, const SessionSpec& session);

}  // namespace watchdog::monitor
