/// \file
/// What the commands register themselves with, and the options that several of them share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "cli/endpoint.h"
#include "cli/place.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// The program's command line. It outlives the commands' callbacks, which run while it is parsed.
struct CommandLine {
  CLI::App& app;
  const std::vector<SettingInfo>& settings;  ///< All that there are.
  std::vector<int> ignored;  ///< Signals that the caller ignores, of SIGPIPE and SIGXFSZ.
  int code = 0;              ///< The exit code of the command that ran.
};

/// The end of each command's help.
inline constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 unreachable, 5 not found, 130 "
    "interrupted.\n"
    "Data goes to standard output, logs to standard error.";

/// Adds `--server`, `--db`, `--token-file`, `--ca-file` and `--config`. Before the command runs,
/// find_place() fills in what they leave open.
void add_endpoint(CLI::App& command, Endpoint::Options& endpoint, Uses uses = Uses::either);
/// Adds the same without `--db`, for a command that needs a running monitor.
void add_server(CLI::App& command, Endpoint::Options& endpoint);
/// Calls find_place(), and ends the command if the settings are refused.
void look_for_place(Endpoint::Options& endpoint, Uses uses = Uses::either);
/// Adds `--db` and `--config`, for a command that needs the database itself.
void add_database(CLI::App& command, Sources& sources);
/// Adds `--config`.
void add_config(CLI::App& command, Sources& sources);
/// Adds `--config` and each of the settings that has a flag.
void add_settings(CLI::App& command, const std::vector<SettingInfo>& settings, Sources& sources);
/// Names the values of options that have no noun yet.
void name_values(CLI::App& command);

/// Returns the settings, or the exit code after it printed what is wrong: 2 if only the command
/// line is wrong, else 3. From then on their patterns of secrets hold in this process. So every
/// command that writes reads the settings first, even if it needs no other of them.
[[nodiscard]] Result<Settings, int> configured(const Sources& sources);
/// The same without notices and patterns of secrets, to look up a single setting.
[[nodiscard]] Result<Settings, int> read_settings(const Sources& sources);
/// Runs the action if the settings are right; returns its exit code, or that of the settings.
[[nodiscard]] int with_settings(const Sources& sources, const std::function<int()>& action);

}  // namespace watchdog::monitor
