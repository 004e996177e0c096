/// \file
/// The socket that a service manager holds for this process (sd_listen_fds(3)).
#pragma once

#include <optional>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Returns the descriptor of the listening socket that was passed to this process; nothing: none
/// was. It is not passed on to other programs. Errors: `invalid` (several sockets; not a listening
/// TCP socket). Call it once, before other threads run.
[[nodiscard]] Result<std::optional<int>> service_socket();

}  // namespace watchdog::monitor
