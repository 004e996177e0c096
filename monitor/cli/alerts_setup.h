/// \file
/// Adds a channel of alerts to the settings.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "watchdog/settings.h"

namespace watchdog::monitor {

/// The answers of the command line; empty fields are asked for on a terminal. A plain value.
struct AlertsSetup {
  Sources sources;  ///< Only `file` counts.
  std::string kind, name, url, to, from;
  std::string content;  ///< Empty: ask, or none.
  std::filesystem::path url_file, secret_file, ca_file;
  std::vector<std::string> command;
  std::string secret;  ///< Never from the command line.
  bool no_test = false;
};

/// Asks, writes, tests; returns the exit code.
[[nodiscard]] int set_up_channel(AlertsSetup setup);

}  // namespace watchdog::monitor
