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
  Health health;
  std::string reason;
  std::uint64_t policy_digest = 0;
  /// What its witness told, as JSON; empty: there was none, or it is no trouble. Nobody judges by
  /// it, and the same events need not give the same.
  std::string situation;
};

class Case;
/// Says what is known of a session at the moment that trouble is concluded, before what is
/// concluded changes anything.
using Witness = std::function<std::string(const Case& judged, Instant now)>;

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

  /// Takes the session's next event, or one of the observer. What expired before the event is
  /// appended to `changes` first, then what the event changed. `witness` may be null.
  void take(const Event& event, std::vector<Transition>& changes, const Witness* witness = nullptr);

  /// Concludes what follows from time alone up to and including `now`.
  void expire(Instant now, std::vector<Transition>& changes, const Witness* witness = nullptr);

 private:
  void conclude(Instant now, std::vector<Transition>& changes, const Witness* witness);
  void remember();
};

}  // namespace watchdog
