/// \file
/// The texts of alerts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/alert_links.h"
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
  bool content = false;  ///< The text contains questions, commands, tasks and errors.
  std::string url;       ///< Of the monitor, for links, without a slash at its end.
  /// Makes the links by which a person answers an alert; empty: there are none.
  std::function<std::vector<AlertButton>(const Alert&)> buttons{};
  std::optional<WallTime> now{};  ///< From it times that are left count; empty: the system's time.
};

/// A message in its parts, before a receiver's escapes. A plain value.
struct MessageText {
  std::string title;  ///< One short line.
  std::string text;   ///< One line per alert.
  std::string below;  ///< The same where the title stands above it, without what the title says.
  std::string link;   ///< To the session or the monitor; empty: none.
};

/// Cleans a text for a person: no secrets, bounded, without line breaks that would look like ours.
[[nodiscard]] std::string clean_text(const std::string& text, std::size_t chars_max = 300);
/// `2026-01-31T12:00:00Z`.
[[nodiscard]] std::string utc_text(WallTime at);
/// The page of its session.
[[nodiscard]] std::string link_to(const Alert& alert, const AlertWording& wording);

/// Returns a sentence about one session: its name, its state, the reason, since when. Without
/// secrets.
[[nodiscard]] std::string sentence_of(const Alert& alert, const AlertWording& wording);
/// Returns the whole message, one line per alert. If there are many alerts, the list is cut short.
[[nodiscard]] std::string text_of(const AlertMessage& message, const AlertWording& wording);
[[nodiscard]] MessageText message_text(const AlertMessage& message, const AlertWording& wording);

}  // namespace watchdog::monitor
