/// \file
/// Scripts with which shells complete the words of this program.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace watchdog::monitor {

/// A script for bash 4 or later, to be sourced. It completes commands, their options, the words
/// that an option or an argument allows, files, and the ids of sessions where one is asked for.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

/// The same for zsh 5 or later: to be sourced after `compinit`, or a file `_watchdog-monitor` in a
/// directory of `fpath`.
[[nodiscard]] std::string zsh_completion(const CLI::App& app);

/// The same for fish 3 or later: to be sourced, or a file in one of its directories of completions.
[[nodiscard]] std::string fish_completion(const CLI::App& app);

}  // namespace watchdog::monitor
