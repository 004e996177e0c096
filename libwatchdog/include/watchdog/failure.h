/// \file
/// Why something that a run needs came to nothing.
#pragma once

#include <optional>
#include <string>

#include "watchdog/time.h"

namespace watchdog {

/// A plain value.
struct Failure {
  std::string reason;   ///< The class: one of reasons.h. A run that ends by it has this reason.
  std::string message;  ///< For a person; names the server, the status, the limit.
  bool recoverable = false;             ///< The same again, a while later, may go well.
  int status = 0;                       ///< Of an HTTP answer; 0: there was none.
  std::optional<Millis> retry_after{};  ///< The server asked for so much patience.
};

}  // namespace watchdog
