/// \file
/// Decides which alerts follow from a session's state: pure functions over values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/health.h"
#include "watchdog/history.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// An alert, or that what was alerted is over.
enum class AlertKind : std::uint8_t { alert, recovery };

template <>
struct Names<AlertKind> {
  static constexpr std::string_view all[] = {"alert", "recovery"};
};

/// A session's state as far as alerts use it. A plain value.
struct Condition {
  /// Whether a session is in trouble.
  enum class Kind : std::uint8_t {
    calm,     ///< Nothing is wrong, or it is over.
    trouble,  ///< `cause`
    unclear   ///< Neither: earlier alerts stay valid.
  };
  Kind kind = Kind::unclear;             ///< Whether it is in trouble.
  AlertCause cause = AlertCause::stuck;  ///< The trouble.
  bool waits = false;                    ///< It waits for something, wanted as a cause or not.
  std::string word{};                    ///< Its health or lifecycle, e.g. `looping`.
  std::string reason{};                  ///< For a person, without texts of the session.
  std::string detail{};                  ///< The session's own text: a question, an error.
  Instant tick{};                        ///< Since when, on the file's time line.
  WallTime at{};                         ///< The same by the wall.
};

/// Returns the reason of a health for messages.
[[nodiscard]] PublicReason public_reason_of(const Health& health, const History& history,
                                            const Policy& policy, Instant now = {});

/// Returns the condition of a running session by its health, or of an ended one by its end.
/// `wait`: the cause that its wait would have, if it waits.
[[nodiscard]] Condition condition_of(const Health& health, const AlertRules& rules,
                                     AlertCause wait = AlertCause::blocked);
/// Likewise by the end alone.
[[nodiscard]] Condition condition_of(Lifecycle end, const AlertRules& rules);

/// The alert state of a session. A plain value; a default one belongs to a calm session.
struct AlertState {
  std::optional<AlertCause> trouble{};  ///< Its present trouble.
  /// Of its present state.
  std::string word, reason, detail;  ///< Of its present state.
  Instant since{};                   ///< Since when,
  WallTime at{};                     ///< the same by the calendar.
  Instant blocked_since =
      never;  ///< Since when it waits on purpose; after `blocked_for` that is a trouble.

  /// When the trouble began that was alerted. All alerts until its end share it. `never`: none was
  /// sent.
  Instant episode = never;
  std::optional<AlertCause>
      alerted{};              ///< The worst cause that was alerted since then, or since a snooze.
  bool acknowledged = false;  ///< A person acknowledged it: no more alerts until it is over.
  Instant snoozed_until{};    ///< No alerts before that.

  std::vector<Instant> changes{};  ///< To trouble and back, the newest ones.
  bool flapping =
      false;  ///< An alert reported flapping. The next one waits until the session is calm.

  /// Returns true if it equals a default one at `now`.
  [[nodiscard]] bool is_forgettable(Instant now, const AlertRules& rules) const;
};

/// An alert to send. A plain value.
struct AlertNotice {
  AlertKind kind = AlertKind::alert;  ///< An alert or a recovery.
  std::string word{};                 ///< The health or lifecycle.
  std::string reason{};               ///< For a person, without texts of the session.
  std::string detail{};               ///< The session's own text: a question, an error.
  WallTime at{};                      ///< Since when the condition holds.
  Instant episode{};                  ///< All alerts about one trouble share it.
};

/// Returns the alert for the session's condition from `condition.tick` on, if one follows. Alerts
/// that were due before must have been taken (`next_due_notice`).
[[nodiscard]] std::optional<AlertNotice> fold(AlertState& state, const Condition& condition,
                                              const AlertRules& rules);
/// Returns when an alert becomes due without another change; `never`: not without a change.
[[nodiscard]] Instant due_of(const AlertState& state, const AlertRules& rules);
/// Returns the next alert that is due up to `now`; nothing if none is left.
[[nodiscard]] std::optional<AlertNotice> next_due_notice(AlertState& state, Instant now,
                                                         const AlertRules& rules);
/// Records that a person knows: no more alerts until the trouble is over.
void acknowledge(AlertState& state);
/// Silences the session until then. If it is still in trouble, it is alerted again.
void snooze(AlertState& state, Instant until);

/// A message that went out. A plain value.
struct MessageMade {
  Instant at{};  ///< When it went out.
  std::string
      parent{};  ///< The parent of all its sessions; empty: they have none, or different ones.
};

/// Which alerts go out together. A plain value.
struct Grouping {
  std::vector<std::vector<std::size_t>> messages{};  ///< Indices of the alerts of each message.
  Instant next = never;                              ///< When to group the remaining ones.
};

/// An alert that waits for its message. A plain value.
struct AlertMade {
  std::string parent{};  ///< Of its session; empty: none.
  bool asks = false;     ///< A person is asked, or no more.
};

/// Of more questions within `group_window`, the rest are grouped as other alerts are.
inline constexpr std::size_t questions_alone_max = 20;

/// Groups alerts that wait, the oldest first. A question goes out at once and alone, so that it can
/// be answered from its message. Other alerts of one parent go together, and all of them if there
/// would be too many messages. Others wait. `recent`: messages of the last `group_window` without
/// those of questions, the oldest first. `asked`: the number of those of questions.
[[nodiscard]] Grouping group_alerts(const std::vector<AlertMade>& alerts,
                                    const std::vector<MessageMade>& recent, std::size_t asked,
                                    Instant now, const AlertRules& rules);

}  // namespace watchdog
