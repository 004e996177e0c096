/// \file
/// Where and how a monitor listens, from its settings.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "api/access_policy.h"
#include "cli/token_watch.h"
#include "http/server.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Returns the files for HTTPS; nothing: plain HTTP. Errors: `invalid` (not an address; a file that
/// cannot be read, or a key that others can read; an address that other machines reach without TLS
/// or a reverse proxy).
[[nodiscard]] Result<std::optional<TlsFiles>> tls_files(const MonitorSettings& own);

/// Returns the access policy. Creates the token file if neither that nor `$WATCHDOG_TOKEN` has a
/// token. Errors: `invalid`, `unavailable`.
[[nodiscard]] Result<AccessPolicy> access_policy_for(const Settings& settings);

/// Calls `changed`, on its own thread, with the new tokens whenever the token file changes. Logs
/// that.
[[nodiscard]] std::unique_ptr<TokenWatch> watch_tokens(
    const Settings& settings, const AccessPolicy& access_policy,
    std::function<void(std::vector<Token>)> changed);

}  // namespace watchdog::monitor
