/// \file
/// About which sessions the monitor asks a model without being asked to.
#pragma once

#include "watchdog/session.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// The label of a session that says which model server its agent uses: `https://HOST[:PORT]`. The
/// proxy sets it; agents that report themselves may.
inline constexpr std::string_view server_label = "server";

/// True if what the session's agent said may go to the server for checks unasked: it is named for
/// checks, or one of this network (http), or the hosted one (https) that this agent uses anyway.
/// There prompts do not displace each other. Pure.
[[nodiscard]] bool may_ask_unasked(const Settings& settings, const SessionSpec& session);

}  // namespace watchdog::monitor
