/// \file
/// What coding agents tell of themselves through their hooks, as reports.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/names.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"

namespace watchdog::monitor {

/// Whose hooks are understood.
enum class HookAgent : std::uint8_t { claude_code, codex, gemini_cli, opencode };

/// One hook's event. A plain value.
struct HookEvent {
  std::string session;  ///< The agent's own id; of a subagent, with the subagent's behind it.
  SessionSpec spec;     ///< How the session is made if it is not there.
  std::vector<Report> reports;  ///< Empty: nothing is kept of such an event.
};

/// An event that a hook sent, as reports. `session`: tell it of this one instead of the agent's
/// own; empty: do not. Events of unknown names are a message that says so. Tool calls, and whatever
/// else has an id or a time of its own, get an event id: told twice, they happened once. Errors:
/// `malformed`: no JSON object, or without the event's name or the session's id. Thread-safe.
[[nodiscard]] Result<HookEvent> hook_event(HookAgent agent, std::string_view body,
                                           const std::string& session = {});

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::HookAgent> {
  static constexpr std::string_view all[] = {"claude-code", "codex", "gemini-cli", "opencode"};
};
}  // namespace watchdog
