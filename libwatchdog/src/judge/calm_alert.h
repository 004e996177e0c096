/// \file
/// Conditions of a session that nobody is called to.
#pragma once

#include "judge/alert_rule.h"
#include "watchdog/history.h"

namespace watchdog {

/// A child has its own alerts, and while it works its parent's wait counts no time.
void be_calm_in_family(Condition& condition, const History& history);
/// Nobody is called to a recording that is read more than a day after its run. The clocks of other
/// sources may be wrong, so their old times prove nothing.
void be_calm_in_recording(Condition& condition, const History& history, WallTime wall);

}  // namespace watchdog
