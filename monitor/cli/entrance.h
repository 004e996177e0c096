/// \file
/// How a monitor is entered, from its settings.
#pragma once

#include <optional>

#include "api/gate.h"
#include "http/server.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// What HTTPS needs; nothing: it is not spoken. Errors: `invalid` (no address; a file that cannot
/// be read, or a key that others can; an address that other machines reach without TLS or a
/// proxy's).
[[nodiscard]] Result<std::optional<TlsFiles>> tls_files(const MonitorSettings& own);

/// Who may do what. Makes the token file where neither that nor `$WATCHDOG_TOKEN` has a token.
/// Errors: `invalid`, `unavailable`.
[[nodiscard]] Result<Gate> gate_for(const Settings& settings);

}  // namespace watchdog::monitor
