/// \file
/// Passes messages between standard input and output, and the process of a tool server.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/proxied_client.h"

namespace watchdog::monitor {

/// A plain value.
struct StdioProxyOptions {
  std::vector<std::string> words;  ///< The tool server: its program and arguments.
  mcp::CallBook::Options book{};
  /// How long a call that was given up may keep a server on which nothing else is open; empty: it
  /// may keep it for ever.
  std::optional<Millis> kill_after{};
};

/// Runs until the client closes standard input, or the server ends at its start. Returns the exit
/// code: the server's, or 128 + a signal that ended this process. REQUIRES: this process has
/// blocked SIGINT, SIGTERM and SIGHUP.
[[nodiscard]] int run_stdio_proxy(const StdioProxyOptions& options, const CallSink& sink);

}  // namespace watchdog::monitor
