/// \file
/// The bodies of messages, in the form of each receiver.
#pragma once

#include <string>

#include "alerts/alert_text.h"

namespace watchdog::monitor {

/// Receiver and key of a body. A plain value.
struct Addressee {
  std::string to{};           ///< The chat of Telegram, the topic of ntfy.
  std::string routing_key{};  ///< Of PagerDuty.
};

/// The body as the channel wants it, within the limits of `channel_kinds`. REQUIRES for pagerduty:
/// at most one alert. Thread-safe.
[[nodiscard]] std::string body_of(const AlertMessage& message, AlertFormat format,
                                  const AlertWording& wording, const Addressee& addressee);

/// Returns true if every alert of the message says that its trouble is over.
[[nodiscard]] bool is_good_news(const AlertMessage& message);

}  // namespace watchdog::monitor
