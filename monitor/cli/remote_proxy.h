/// \file
/// Passes messages between standard input and output, and a tool server behind a URL.
#pragma once

#include "cli/proxied_client.h"
#include "cli/remote_server.h"

namespace watchdog::monitor {

/// Runs until the client closes standard input. Returns the exit code: 0, or 128 + a signal that
/// ended this process. REQUIRES: this process has blocked SIGINT, SIGTERM and SIGHUP.
[[nodiscard]] int run_remote_proxy(RemoteServer& server, const mcp::CallBook::Options& options,
                                   const CallSink& sink);

}  // namespace watchdog::monitor
