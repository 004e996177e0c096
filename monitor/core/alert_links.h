/// \file
/// Links in messages by which a person answers an alert without logging in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/held_questions.h"
#include "store/alerts.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

namespace monitor {
/// An act by a link.
enum class AlertAnswer : std::uint8_t { acknowledge, snooze, allow, deny };
}  // namespace monitor

template <>
struct Names<monitor::AlertAnswer> {
  static constexpr std::string_view all[] = {"acknowledge", "snooze", "allow", "deny"};
};

}  // namespace watchdog

namespace watchdog::monitor {

/// A link in a message. A plain value.
struct AlertButton {
  std::string label, url;
};

inline constexpr Millis link_lasts{86'400'000};   ///< A link can be used for that long.
inline constexpr Millis link_snoozes{3'600'000};  ///< A link silences a session for that long.

/// The text of a link, as it came. A plain value.
struct AlertLink {
  AlertAnswer answer = AlertAnswer::acknowledge;
  std::int64_t alert = 0;
  WallTime until{};
  std::string question{};  ///< The id of the question that is answered; empty for other acts.
  std::string signature{};
};

/// True for the answers to a question of the agent.
[[nodiscard]] constexpr bool is_for_agent(AlertAnswer answer) {
  return answer == AlertAnswer::allow || answer == AlertAnswer::deny;
}

/// Signs links and recognises its own. A link names an act, an alert, its last moment, and of an
/// answer to the agent the question: the next question of the same session is another one. The
/// signature (HMAC-SHA256) also covers the session, so an alert of the same number in another
/// database has other links. Nothing is stored for a link: an alert or a question that was answered
/// takes no second answer by link. Thread-safe.
class AlertLinks {
 public:
  /// `key`: a secret of at least 32 bytes. `url`: the monitor's, without a slash at its end.
  AlertLinks(std::string key, std::string url) : key_(std::move(key)), url_(std::move(url)) {}

  /// The last part of a link's path. `question`: its id, of an answer to the agent.
  [[nodiscard]] std::string token(AlertAnswer answer, const Alert& alert, WallTime until,
                                  std::string_view question = {}) const;
  /// The links of a message about this alert: those that answer the agent where it asks for a
  /// permission, else those that silence the alert.
  [[nodiscard]] std::vector<AlertButton> buttons(
      const Alert& alert, WallTime now, const std::optional<HeldQuestion>& question = {}) const;
  /// Compares in constant time.
  [[nodiscard]] bool is_own(const AlertLink& link, const Alert& alert) const;

 private:
  std::string key_, url_;
};

/// Reads a token; nothing if it is not one. It proves nothing yet: see AlertLinks::is_own.
[[nodiscard]] std::optional<AlertLink> alert_link_from(std::string_view token);

/// True if a person or a link answered the alert.
[[nodiscard]] bool is_answered(const Alert& alert);

}  // namespace watchdog::monitor
