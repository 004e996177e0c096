/// \file
/// How a session is, and one session under judgement: its history, its policy, its health so far.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "watchdog/history.h"
#include "watchdog/policy.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The conclusion about a running session. It never ends the session.
enum class HealthKind : std::uint8_t {
  unknown,      ///< no report yet; or none for long, and nothing else shows whether the agent works
  starting,     ///< alive, no state change yet
  progressing,  ///< made progress
  slow,         ///< alive, below its own pace, no sign of being stuck
  suspect,      ///< may be stuck; not confirmed
  stuck,        ///< alive, without progress
  looping,      ///< repeats itself
  blocked,      ///< waits on purpose
  silent,       ///< its heartbeats stopped
  dead,         ///< silent, and its process is gone
  idle          ///< its answer is complete, and nothing is open
};

template <>
struct Names<HealthKind> {
  static constexpr std::string_view all[] = {"unknown", "starting", "progressing", "slow",
                                             "suspect", "stuck",    "looping",     "blocked",
                                             "silent",  "dead",     "idle"};
};

/// Returns how much the health of a session explains the waits of others: the greater the more, 0
/// nothing.
[[nodiscard]] constexpr int severity(HealthKind kind) noexcept {
  switch (kind) {
    case HealthKind::dead:
      return 6;
    case HealthKind::silent:
      return 5;
    case HealthKind::stuck:
      return 4;
    case HealthKind::looping:
      return 3;
    case HealthKind::blocked:
      return 2;
    case HealthKind::suspect:
      return 1;
    default:
      return 0;
  }
}

/// A judgement. A plain value.
struct Health {
  HealthKind kind = HealthKind::unknown;  ///< How the session is.
  Pattern pattern = Pattern::none;        ///< The cause.
  /// Without another event this health holds until this instant.
  Instant valid_until = never;
  /// Events that prove it; 0: fewer than two.
  std::array<Seq, 2> evidence{};

  /// Returns true for the same conclusion with the same cause; `valid_until` may differ.
  [[nodiscard]] bool same_as(const Health& other) const noexcept {
    return kind == other.kind && pattern == other.pattern;
  }
};

/// Judges the session at `now`. Pure. REQUIRES: now >= history.tick, and the session has not ended.
[[nodiscard]] Health judge(const History& history, const Policy& policy, Instant now);

/// Returns whether at least `stuck_threshold` loop heartbeats came since the newest state change.
[[nodiscard]] bool base_rule(const History& history, const Policy& policy) noexcept;

/// Returns the longest time without any sign of life: `silence_intervals`, plus the longest gap
/// between the latest heartbeats rounded to whole intervals.
[[nodiscard]] Millis silence_bound(const History& history, const Policy& policy) noexcept;

/// Returns when the silence bound is reached, for any source of heartbeats.
[[nodiscard]] Instant silence_begins(const History& history, const Policy& policy) noexcept;

/// Returns true for a health that a person should look into.
[[nodiscard]] constexpr bool is_trouble(HealthKind kind) noexcept {
  return severity(kind) > 0 && kind != HealthKind::blocked;
}

/// Returns the session's present activity by its pace: its bounds, its start, and when they are
/// reached.
struct PaceNow {
  std::string_view activity{};  ///< The tool or phase; valid while the history is.
  std::uint32_t kind = 0;       ///< The activity's, see Pace.
  PaceBounds bounds{};          ///< The bounds of its activity.
  Instant since{};              ///< When its activity began.
  Instant slow_at = never;      ///< From then on it is slow.
  Instant suspect_at = never;   ///< From then on it is suspect.
};
/// Returns the session's pace at the end of its history. Pure.
[[nodiscard]] PaceNow pace_now(const History& history, const Policy& policy) noexcept;

/// Returns until when the last report about the model server counts. If a relay sends heartbeats:
/// `call_idle_max` after its last one, because the relay may be gone; else `never`.
[[nodiscard]] Instant server_known_until(const History& history, const Policy& policy) noexcept;
/// Returns the model server's state in a few words; empty if it has none worth showing: `reads the
/// prompt: 41,216 of 61,440 tokens, about 2 min left`.
[[nodiscard]] std::string server_in_words(const ServerNote& note);
/// Returns the same for a cell of a table: `reading 41,216 / 61,440, ~2 min`.
[[nodiscard]] std::string server_in_brief(const Evidence& evidence);

/// Returns the number of independent confirmations of a suspicion: repetition, models, the agent
/// itself, its model server.
[[nodiscard]] int confirmations(const History& history, const Policy& policy);

/// Returns looping for a repetition, else stuck.
[[nodiscard]] HealthKind trouble_of(Pattern pattern) noexcept;

/// Returns `alive` of the progress document: the last heartbeat is younger than two intervals.
/// False before the first heartbeat and after the end.
[[nodiscard]] bool is_alive(const History& history, const Policy& policy, Instant now) noexcept;

/// Returns the health's reason in a sentence for people: the cause, what was measured until `now`,
/// and the limit. Without `now`: until its newest event.
[[nodiscard]] std::string reason_of(const Health& health, const History& history,
                                    const Policy& policy, Instant now = {});
/// Returns the same of an end: the error's first line, and the number of wasted calls.
[[nodiscard]] std::string end_in_words(const Outcome& outcome, std::int32_t wasted_calls);
/// Returns what one piece of evidence shows; `at` is an index into `health.evidence`.
[[nodiscard]] std::string evidence_note(const Health& health, std::size_t at);

/// Version of these rules; transitions carry it.
inline constexpr std::string_view detector_version = "11";

/// The causes of an alert. `blocked` is a wait that lasts; `needs_input` one that only a person
/// ends; `quota` one for the end of a limit. `quiet` is a running session in which nothing has
/// moved for long. `idle` is a finished turn that is its person's.
enum class AlertCause : std::uint8_t {
  stuck,
  looping,
  blocked,
  dead,
  failed,
  incomplete,
  needs_input,
  quota,
  suspect,
  quiet,
  idle,
  silent
};

template <>
struct Names<AlertCause> {
  static constexpr std::string_view all[] = {"stuck",   "looping",    "blocked",     "dead",
                                             "failed",  "incomplete", "needs_input", "quota",
                                             "suspect", "quiet",      "idle",        "silent"};
};

/// A reason that may leave the machine, and the agent's own texts that belong to it. A plain value.
struct PublicReason {
  std::string sentence{};  ///< Names tools and kinds of questions, and no text of the session.
  std::string text{};      ///< The question, command or error; empty: none.
};

/// A change of health. `tick` is the stamp of the event that caused it, or the instant at which the
/// judgement before it expired. A plain value.
struct Transition {
  SessionKey session = observer_key;      ///< The session's key.
  Seq seq = 0;                            ///< The newest event known then.
  Instant tick{};                         ///< When it changed, on the file's time line.
  Millis quiet{};                         ///< From that event to `tick`: 0 if it caused the change.
  WallTime at{};                          ///< The same by the wall.
  HealthKind from = HealthKind::unknown;  ///< The health before.
  Health health{};                        ///< The health now.
  std::string reason{};                   ///< Why, for people.
  PublicReason public_reason{};           ///< The same for messages. The file does not keep this.
  std::uint64_t policy_digest = 0;        ///< The thresholds in force: see digest_of.
  /// The cause of an alert about its wait. The file does not keep this.
  AlertCause wait = AlertCause::blocked;
  /// What the `DetailProvider` returned, as JSON; empty: there was none, or the health is not
  /// trouble. The judge does not use it, and the same events may give another text.
  std::string situation{};
};

/// The thresholds in force. Sessions with the same ones can share them; the default ones take no
/// memory.
class SharedPolicy {
 public:
  /// Returns the thresholds. Thread-safe beside other reads.
  [[nodiscard]] const Policy& operator*() const noexcept {
    static const Policy usual{};
    return policy_ ? *policy_ : usual;
  }
  /// The same.
  [[nodiscard]] const Policy* operator->() const noexcept { return &**this; }
  /// Replaces them by own ones.
  void set(Policy policy) {
    policy_ = policy == Policy{} ? nullptr : std::make_shared<const Policy>(std::move(policy));
  }
  /// Replaces them by shared ones; null: the default ones.
  void share(std::shared_ptr<const Policy> policy) noexcept { policy_ = std::move(policy); }

 private:
  std::shared_ptr<const Policy> policy_;
};

class Case;
/// Returns what is known of a session when the judge concludes trouble, before that conclusion
/// changes the session.
using DetailProvider = std::function<std::string(const Case& judged, Instant now)>;

/// Folds events in order and says what changed. The same events give the same transitions, whenever
/// and however often they are folded. Use from one thread at a time.
class Case {
 public:
  SessionKey session = observer_key;  ///< The session's key in its file.
  Seq folded = 0;           ///< The newest event folded in, of the session or the observer.
  SharedPolicy policy;      ///< The thresholds in force.
  Boxed<PolicyPatch> own;   ///< Those that the session itself stated, at its start and since.
  History history;          ///< The summary of its events.
  Health health;            ///< The health concluded so far.
  WallTime health_since{};  ///< When that health began.

  /// Folds in the session's next event, or one of the observer. Transitions that expired before the
  /// event are appended to `changes` first, then those of the event. `details` may be null.
  void fold(const Event& event, std::vector<Transition>& changes,
            const DetailProvider* details = nullptr);
  /// Its name before 0.2; goes with 0.3.
  void take(const Event& event, std::vector<Transition>& changes,
            const DetailProvider* details = nullptr) {
    fold(event, changes, details);
  }

  /// Concludes what follows from time alone up to and including `now`.
  void expire(Instant now, std::vector<Transition>& changes,
              const DetailProvider* details = nullptr);

 private:
  void conclude(Instant now, std::vector<Transition>& changes, const DetailProvider* details);
  void remember();
};

/// The rules of alerts. A plain value.
struct AlertRules {
  /// The causes of alerts.
  std::vector<AlertCause> on{AlertCause::stuck,       AlertCause::looping,    AlertCause::dead,
                             AlertCause::failed,      AlertCause::incomplete, AlertCause::blocked,
                             AlertCause::needs_input, AlertCause::quota,      AlertCause::quiet};
  Millis hold{0};                 ///< How long a running session's trouble must last first.
  Millis blocked_for{1'800'000};  ///< How long a declared wait may last without an alert.
  /// How long it may wait for a person, or for quota, without an alert.
  Millis needs_input_for{5'000};
  /// How long a finished turn may wait for its person without an alert.
  Millis idle_for{120'000};
  /// With more changes than this (0: no limit) within `flap_window` a session is flapping. Three
  /// troubles that each end within 10 minutes are one trouble for a person.
  int flap_changes = 6;
  Millis flap_window{600'000};  ///< See `flap_changes`.
  int messages_max = 3;  ///< At most this many messages within `group_window`; further alerts are
                         ///< grouped. A person reads no more of them in a minute.
  Millis group_window{60'000};          ///< See `messages_max`.
  std::vector<std::string> channels{};  ///< Names of the channels that get messages.

  /// A rule for `blocked` includes waits for a person and for quota.
  [[nodiscard]] bool wants(AlertCause cause) const noexcept;
};

}  // namespace watchdog
