/// \file
/// Why an operation that a run needs failed.
#pragma once

#include <optional>
#include <string>

#include "watchdog/time.h"

namespace watchdog {

/// A plain value.
struct Failure {
  std::string
      reason{};  ///< The class: one of reasons.h. A run that this failure ends has this reason.
  std::string message{};                ///< For a person; names the server, the status, the limit.
  bool recoverable = false;             ///< The same request may succeed later.
  int status = 0;                       ///< Of an HTTP answer; 0: there was none.
  std::optional<Millis> retry_after{};  ///< The pause that the server asked for.
};

}  // namespace watchdog
