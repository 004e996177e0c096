/// \file
/// What a person is told about sessions, and when: a rule over values.
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
#include "watchdog/names.h"
#include "watchdog/time.h"

namespace watchdog {

/// What somebody may want to be told.
enum class AlertCause : std::uint8_t { stuck, looping, blocked, dead, failed, incomplete };

template <>
struct Names<AlertCause> {
  static constexpr std::string_view all[] = {"stuck", "looping", "blocked",
                                             "dead",  "failed",  "incomplete"};
};

/// An alert, or that what was alerted is over.
enum class AlertKind : std::uint8_t { alert, recovery };

template <>
struct Names<AlertKind> {
  static constexpr std::string_view all[] = {"alert", "recovery"};
};

/// When what is told. A plain value.
struct AlertRules {
  std::vector<AlertCause> on{AlertCause::stuck,  AlertCause::looping,    AlertCause::dead,
                             AlertCause::failed, AlertCause::incomplete, AlertCause::blocked};
  Millis hold{0};                 ///< A running session's trouble must hold so long first.
  Millis blocked_for{1'800'000};  ///< So long may a session wait on purpose before that is told.
  int flap_changes = 6;           ///< More changes to and fro than this (0: however many)
  Millis flap_window{600'000};  ///< in this time are told once, and then nothing until it is calm.
  int messages_max = 3;         ///< No more messages than this
  Millis group_window{60'000};  ///< in this time: what comes more goes together in one.
  std::vector<std::string> channels{};  ///< Names of those that messages go to.

  [[nodiscard]] bool wants(AlertCause cause) const noexcept;
};

/// How a session is, as far as alerts go. A plain value.
struct Condition {
  enum class Kind : std::uint8_t {
    calm,     ///< Nothing is wrong, or it is over.
    trouble,  ///< `cause`
    unclear   ///< Neither: what was told before still stands.
  };
  Kind kind = Kind::unclear;
  AlertCause cause = AlertCause::stuck;
  std::string word;    ///< Its health or lifecycle, e.g. `looping`.
  std::string reason;  ///< For a person.
  Instant tick{};
  WallTime at{};
};

/// Of a running session by its health, and of one that has ended by how it did.
[[nodiscard]] Condition condition_of(HealthKind health, const AlertRules& rules);
[[nodiscard]] Condition condition_of(Lifecycle end, const AlertRules& rules);

/// What is remembered of a session. A plain value; a fresh one is of a session that is calm.
struct AlertState {
  std::optional<AlertCause> trouble;  ///< What it is in now.
  std::string word, reason;           ///< Of how it is now.
  Instant since{};                    ///< Since when, and
  WallTime at{};                      ///< the same by the calendar.
  Instant blocked_since = never;      ///< It waits on purpose; after a time that is a trouble.

  /// The trouble told of began then: what belongs together, until it is over. `never`: nothing is
  /// told.
  Instant episode = never;
  std::optional<AlertCause> told;  ///< The worst that was told since then, or since a snooze.
  bool acknowledged = false;       ///< Somebody knows: nothing more until it is over.
  Instant snoozed_until{};         ///< Nothing before that.

  std::vector<Instant> changes;  ///< To trouble and back, the newest ones.
  bool flapping = false;         ///< That it comes and goes is told; nothing more until it is calm.

  /// True if it is no different from a fresh one, at `now`.
  [[nodiscard]] bool is_forgettable(Instant now, const AlertRules& rules) const;
};

/// Something to tell. A plain value.
struct Telling {
  AlertKind kind = AlertKind::alert;
  std::string word, reason;
  WallTime at{};      ///< Since when it is so.
  Instant episode{};  ///< The same for all that is told of one trouble.
};

/// The session is like this from `condition.tick` on: what is to be told of that. What was due
/// before must have been told (`tell_due`).
[[nodiscard]] std::optional<Telling> take(AlertState& state, const Condition& condition,
                                          const AlertRules& rules);
/// When there will be something to tell although nothing changes; `never`: not without a change.
[[nodiscard]] Instant due_of(const AlertState& state, const AlertRules& rules);
/// Tells the next of what is due up to `now`; nothing if there is none left.
[[nodiscard]] std::optional<Telling> tell_due(AlertState& state, Instant now,
                                              const AlertRules& rules);
/// Somebody knows of it: quiet until it is over.
void acknowledge(AlertState& state);
/// Quiet until then; if it is in trouble still, that is told again.
void snooze(AlertState& state, Instant until);

/// A message that went out. A plain value.
struct MessageMade {
  Instant at{};
  std::string parent;  ///< Of all its sessions; empty: they have none, or not the same.
};

/// Which alerts go out together. A plain value.
struct Grouping {
  std::vector<std::vector<std::size_t>> messages;  ///< Each some of those that waited.
  Instant next = never;                            ///< When to look again at those left.
};

/// Groups alerts that wait, given by their sessions' parents (empty: none), the oldest first:
/// alerts of one parent go together, and all of them if there would be too many messages. What
/// comes too soon after others waits. `recent`: messages of the last `group_window`, the oldest
/// first.
[[nodiscard]] Grouping group_alerts(const std::vector<std::string>& parents,
                                    const std::vector<MessageMade>& recent, Instant now,
                                    const AlertRules& rules);

}  // namespace watchdog
