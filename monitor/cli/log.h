/// \file
/// The form of the monitor's log. It goes to standard error: standard output carries data.
#pragma once

#include "watchdog/settings.h"

namespace watchdog::monitor {

/// From now on lines are of this format: for people, or `{"time", "level", "message"}` a line. In
/// both, secrets are taken out, and what agents say steers no terminal and ends no line.
void log_as(LogFormat format);

}  // namespace watchdog::monitor
