/// \file
/// What the commands say of themselves, for other programs: bash's completion, and man.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace watchdog::monitor {

/// A script for bash: commands, their options, the words that an option allows, files, and the ids
/// of sessions where one is asked for.
[[nodiscard]] std::string bash_completion(const CLI::App& app);

/// The manual page, in man's macros (man(7)).
[[nodiscard]] std::string man_page(const CLI::App& app);

}  // namespace watchdog::monitor
