/// \file
/// The help text of a demo program.
#pragma once

#include <iostream>
#include <optional>
#include <string_view>

/// Answers `--help` and `--version`, and refuses other options and too many arguments. Returns the
/// exit code, or nothing if the program is to run. `usage` begins with `Usage: PROGRAM`.
inline std::optional<int> answer_about(std::string_view program, std::string_view usage, int argc,
                                       char** argv, int arguments_max) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h") {
    std::cout << usage;
    return 0;
  }
  if (first == "--version") {
    std::cout << program << ' ' << WATCHDOG_VERSION << '\n';
    return 0;
  }
  if (!first.starts_with('-') && argc - 1 <= arguments_max) return std::nullopt;
  std::cerr << usage;
  return 2;
}
