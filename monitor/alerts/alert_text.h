/// \file
/// The texts of alerts.
#pragma once

#include <string>
#include <vector>

#include "store/alerts.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// A message to send. A plain value.
struct AlertMessage {
  std::string key;            ///< The same for each attempt: a receiver can recognise a repetition.
  std::vector<Alert> alerts;  ///< Empty: a message that only tries the channel.
};

/// Settings for the text of alerts. A plain value.
struct AlertWording {
  bool content = false;  ///< The text contains tasks and errors.
  std::string url;       ///< Of the monitor, for links, without a slash at its end.
};

/// Returns a sentence about one session: its name, its state, the reason, since when. Without
/// secrets.
[[nodiscard]] std::string sentence_of(const Alert& alert, const AlertWording& wording);
/// Returns the whole message, one line per alert. If there are many alerts, the list is cut short.
[[nodiscard]] std::string text_of(const AlertMessage& message, const AlertWording& wording);
/// The body as the channel wants it. REQUIRES for pagerduty: at most one alert.
[[nodiscard]] std::string body_of(const AlertMessage& message, AlertFormat format,
                                  const AlertWording& wording, const std::string& routing_key);

}  // namespace watchdog::monitor
