/// \file
/// Compresses what a browser asks for, where it says that it understands that.
#pragma once

#include "api/message.h"

namespace watchdog::monitor {

/// Returns the response with a gzip body if the request accepts one; else as it is. For pages only:
/// they hold no secret whose length could be guessed. Thread-safe.
[[nodiscard]] Response compressed(Response response, const Request& request);

}  // namespace watchdog::monitor
