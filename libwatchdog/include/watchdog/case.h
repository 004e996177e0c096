/// \file
/// One session under judgement: its history, its policy, and the health concluded so far.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "watchdog/health.h"
#include "watchdog/history.h"
#include "watchdog/policy.h"

namespace watchdog {

/// A change of health. `tick` is the stamp of the event that caused it, or the instant at which the
/// judgement before it expired. A plain value.
struct Transition {
  SessionKey session = observer_key;
  Seq seq = 0;  ///< The newest event known then.
  Instant tick{};
  Millis quiet{};  ///< From that event to `tick`: 0 if it caused the change.
  WallTime at{};
  HealthKind from = HealthKind::unknown;
  Health health{};
  std::string reason{};
  std::uint64_t policy_digest = 0;
  bool for_person = false;  ///< It waits for a person then. The file does not keep this.
  /// What the `DetailProvider` returned, as JSON; empty: there was none, or the health is not
  /// trouble. The judge does not use it, and the same events may give another text.
  std::string situation{};
};

class Case;
/// Returns what is known of a session when the judge concludes trouble, before that conclusion
/// changes the session.
using DetailProvider = std::function<std::string(const Case& judged, Instant now)>;

/// Folds events in order and says what changed. The same events give the same transitions, whenever
/// and however often they are folded. Use from one thread at a time.
class Case {
 public:
  SessionKey session = observer_key;
  Seq folded = 0;  ///< The newest event taken, of the session or the observer.
  Boxed<Policy> policy;
  History history;
  Health health;
  WallTime health_since{};

  /// Takes the session's next event, or one of the observer. Transitions that expired before the
  /// event are appended to `changes` first, then those of the event. `details` may be null.
  void take(const Event& event, std::vector<Transition>& changes,
            const DetailProvider* details = nullptr);

  /// Concludes what follows from time alone up to and including `now`.
  void expire(Instant now, std::vector<Transition>& changes,
              const DetailProvider* details = nullptr);

 private:
  void conclude(Instant now, std::vector<Transition>& changes, const DetailProvider* details);
  void remember();
};

}  // namespace watchdog
