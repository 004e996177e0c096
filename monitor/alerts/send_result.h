/// \file
/// The result of one attempt to send alerts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// The result of an attempt. A plain value.
struct SendResult {
  /// `refused`: the channel works and does not want this message.
  enum class Kind : std::uint8_t { accepted, failed, refused };
  Kind kind = Kind::accepted;
  std::string answer{};                 ///< The response, for a person, without secrets.
  std::optional<Millis> retry_after{};  ///< The pause that the channel asks for.
};

}  // namespace watchdog::monitor
