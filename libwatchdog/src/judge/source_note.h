/// \file
/// By which ways a session is heard, and what each tells.
#pragma once

#include "watchdog/history.h"

namespace watchdog {

/// Notes by which way the event came, and what it tells.
void note_source(History& history, const Event& event);

}  // namespace watchdog
