/// \file
/// Turns the events of coding agents' hooks into reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Whose hooks are understood.
/// `generic`: of an agent that has no table here; its events have the names in docs.
enum class HookAgent : std::uint8_t {
  claude_code,
  codex,
  gemini_cli,
  opencode,
  cursor,
  copilot_cli,
  generic
};

/// One hook's event. A plain value.
struct HookEvent {
  std::string name;  ///< As the agent calls it.
  /// The agent's own id; of a subagent, with the subagent's behind it. Empty only where nothing is
  /// kept: the event is of the whole program.
  std::string session;
  SessionSpec spec;             ///< How the session is made if it is not there.
  std::vector<Report> reports;  ///< Empty: nothing is kept of such an event.
  /// Of a request for permission that names no call by its id: the call as the agent describes it.
  std::optional<Report> asks_for{};
  std::string transcript{};     ///< The path of the session's own file, as the agent says it.
  bool resumes = false;         ///< The agent goes on with a session that it left.
  bool ends_subagents = false;  ///< Subagents within the session's process have stopped.
};

/// Returns the reports of a hook's event. `session`: report to this one instead of the agent's own;
/// empty: the agent's own. `named`: the event if the body does not name it. Events of
/// unknown names become a message. Tool calls, and other events with an id or a time of their own,
/// get an event id, so a repeated one is stored once. Errors: `malformed`: not a JSON object, or
/// without the event's name or the session's id. `now`: texts like "resets 9pm" mean the next 9pm.
/// Thread-safe.
[[nodiscard]] Result<HookEvent> hook_event(HookAgent agent, std::string_view body,
                                           const std::string& session = {},
                                           WallTime now = system_clock().wall(),
                                           std::string_view named = {});

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::HookAgent> {
  static constexpr std::string_view all[] = {"claude-code", "codex",       "gemini-cli", "opencode",
                                             "cursor",      "copilot-cli", "generic"};
};
}  // namespace watchdog
