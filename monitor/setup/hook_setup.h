/// \file
/// What each agent's configuration must have so that the agent's hooks report to a monitor.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// The form of a hook in an agent's file. `grouped`: groups of handlers, with a matcher each.
/// `command`, `bash`: a list of objects with that member. `plugin`: the file is a program. The
/// others are no hooks, but an entry in a list of MCP servers: `mcp_plain` with command and args,
/// `mcp_typed` and `mcp_local` also with a type, `mcp_list` with the whole command in one list,
/// `mcp_toml` a table.
enum class HookForm : std::uint8_t {
  grouped,
  command,
  bash,
  plugin,
  mcp_plain,
  mcp_typed,
  mcp_local,
  mcp_list,
  mcp_toml
};

/// An event that has a hook. `is_new`: older versions of the agent do not know it.
struct SetupEvent {
  std::string_view name;
  bool is_new = false;
  bool asks = false;  ///< Its answer may be a person's, see HookTarget::hold_seconds.
};

/// An agent and its files. A plain value.
struct AgentSetup {
  std::string_view name;   ///< As in `/api/hooks/NAME`.
  std::string_view words;  ///< Further names that people use, with blanks between.
  std::span<const std::string_view> programs{};
  HookForm form = HookForm::grouped;
  std::span<const SetupEvent> events{};
  bool has_version = false;           ///< The file begins with `"version": 1`.
  bool leaves_names_out = false;      ///< Of some events: then each hook's address names its event.
  std::string_view timeout_member{};  ///< Of a hook: the seconds that the agent waits for it.
  std::string_view home_variable;     ///< Names the folder that `user_file` is in; may be empty.
  std::string_view home;              ///< That folder below the home directory by default.
  std::string_view user_file;         ///< Below that folder.
  std::string_view project_file;      ///< Below the project's folder.
  std::string_view to_do;             ///< What a person still has to do; empty: nothing.
};

/// All agents that can be set up.
[[nodiscard]] std::span<const AgentSetup> agent_setups();
/// Returns the agent of a name, one of its words or one of its programs; null: there is none.
[[nodiscard]] const AgentSetup* setup_of(std::string_view name);

/// Where hooks report. A plain value.
struct HookTarget {
  std::string server;         ///< URL without a slash at its end.
  std::string header_file{};  ///< A file with the header that carries the token; empty: no token.
  std::string ca_file{};      ///< Certificates (PEM) for the server; empty: the system's.
  bool common_only = false;   ///< Only events that older versions of the agent know.
  /// How long the monitor may hold a question open for a person's answer elsewhere, in seconds;
  /// 0: not; nothing: as the hooks that are there say, else not.
  std::optional<int> hold_seconds{};
  std::string_view plugin{};               ///< The program of `HookForm::plugin`.
  std::vector<std::string> mcp_command{};  ///< Starts the MCP server: program and arguments.
};

/// How the hooks in a file are. `outdated`: an event has no hook, or a hook has another form.
/// `elsewhere`: hooks report to another server.
enum class HookState : std::uint8_t { absent, present, outdated, elsewhere };

/// A plain value.
struct FoundHooks {
  HookState state = HookState::absent;
  std::string server{};                  ///< Of the first hook; empty: there is none.
  std::vector<std::string> reporting{};  ///< Events with a hook that reports to a monitor.
  std::vector<std::string> missing{};    ///< Events of the target without one.
  bool switched_off = false;             ///< The agent's settings forbid all hooks.
  int hold_seconds = 0;  ///< As HookTarget::hold_seconds, of the hooks that are there.
};

/// Checks that the target can be part of a shell command within JSON. Errors: `invalid`.
[[nodiscard]] Result<void> check_target(const HookTarget& target);

/// Returns the text of a file with the hooks, and all its other bytes. A text that has them stays
/// as it is. An empty text stands for a missing file. Errors: `malformed` (with the line),
/// `invalid` (a member has another type; the plugin's file is somebody else's program). Pure.
[[nodiscard]] Result<std::string> with_hooks(const AgentSetup& agent, std::string_view text,
                                             const HookTarget& target);

/// Returns the text of a file without hooks that report to any monitor. If only with_hooks() added
/// them, these are the bytes before that. Exceptions: the version stays; a text without any value
/// becomes an empty object. Errors: as with_hooks(). Pure.
[[nodiscard]] Result<std::string> without_hooks(const AgentSetup& agent, std::string_view text);

/// Errors: as with_hooks(). Pure.
[[nodiscard]] Result<FoundHooks> hooks_in(const AgentSetup& agent, std::string_view text,
                                          const HookTarget& target);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::HookState> {
  static constexpr std::string_view all[] = {"absent", "present", "outdated", "elsewhere"};
};
}  // namespace watchdog
