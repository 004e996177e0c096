/// \file
/// Which of Codex's hooks report to a monitor, and which of those Codex runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace watchdog::monitor {

/// A plain value. Events by Codex's own names.
struct CodexHooks {
  std::vector<std::string> reporting;  ///< A hook of theirs reports to a monitor.
  std::vector<std::string> missing;    ///< None does, and the monitor would learn something of it.
  std::vector<std::string> untrusted;  ///< Codex skips the hook until a person trusts it.
  bool is_json = true;                 ///< False: `hooks.json` cannot be read, so nothing is known.
};

/// Reads the texts of `hooks.json` and `config.toml`. In the second one, Codex keeps a digest of
/// each hook that it trusts. The digest is of the event, the matcher, and the command with its
/// options and its time limit, which Codex 0.169 bounds. Another version may compute another
/// digest; then all hooks are untrusted. Pure.
[[nodiscard]] CodexHooks codex_hooks(std::string_view hooks_json, std::string_view config_toml);

}  // namespace watchdog::monitor
