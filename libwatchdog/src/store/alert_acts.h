/// \file
/// What changes alerts apart from the judge's conclusions: time, deliveries and people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.h"

namespace watchdog {

/// Acts on a store, which must outlive it. Use from the store's thread.
class AlertActs {
 public:
  explicit AlertActs(Store& store) : store_(store), state_(*store.state_) {}

  /// Records the alerts that are due because time passed. Returns when to call it again at the
  /// latest. For the judge alone.
  [[nodiscard]] Result<Instant> next_due(const AlertRules& rules);
  /// Sends the troubles of the last day that are still open, and that nobody acknowledged, to the
  /// channels that were not there when they were alerted. For the judge alone, once when it starts.
  [[nodiscard]] Result<void> give_to_new_channels(const AlertRules& rules);
  /// Returns true if the alerts to send changed since the last call.
  [[nodiscard]] bool drain_new_messages();
  /// Returns the sessions whose alert was acknowledged (true) or snoozed since the last call. For
  /// the judge alone.
  [[nodiscard]] std::vector<std::pair<SessionKey, bool>> drain_known();
  /// Records the result of a delivery.
  [[nodiscard]] Result<void> note(const Attempt& attempt);
  /// Records that a person knows of an alert: no more alerts of that trouble until it is over. The
  /// first person counts. `unanswered_of`, if it is not empty: only an alert of that session that
  /// was neither acknowledged nor snoozed. Errors: `not_found`, `conflict` (it reports a recovery,
  /// or was answered).
  [[nodiscard]] Result<Alert> acknowledge(std::int64_t id, const std::string& by,
                                          std::string_view unanswered_of = {});
  /// Silences the alert's session for `time`; after that it is alerted again if it is still in
  /// trouble. Errors: likewise.
  [[nodiscard]] Result<Alert> snooze(std::int64_t id, Millis time,
                                     std::string_view unanswered_of = {});

 private:
  Store& store_;
  Store::State& state_;
};

}  // namespace watchdog
