/// \file
/// The commands' descriptions for man, and their synopses.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace watchdog::monitor {

/// Returns the text after the command's name: ` [OPTION]... session`.
[[nodiscard]] std::string synopsis(const CLI::App& command);

/// The manual page, in man's macros (man(7)).
[[nodiscard]] std::string man_page(const CLI::App& app);

}  // namespace watchdog::monitor
