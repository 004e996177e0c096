/// \file
/// Who may ask: loopback names only, no other site's pages, and a token where one is set.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/message.h"

namespace watchdog::monitor {

/// A plain value.
struct Gate {
  std::string token;               ///< Empty: none is asked for.
  std::vector<std::string> hosts;  ///< Names this server answers to beside the loopback ones.

  /// The refusal, or nothing if the request may pass.
  [[nodiscard]] std::optional<Response> refuse(const Request& request) const;
};

}  // namespace watchdog::monitor
