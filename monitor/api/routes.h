/// \file
/// What answers a request, by its path. Each replies exactly once.
#pragma once

#include "api/call.h"

namespace watchdog::monitor {

// Sessions
void get_progress(const CallPtr& call);
void get_status(const CallPtr& call);
void list_progress(const CallPtr& call);
void create_session(const CallPtr& call);
void patch_session(const CallPtr& call);
void cancel_session(const CallPtr& call);

// Their events and changes of health
void post_events(const CallPtr& call);
void get_events(const CallPtr& call);
void get_transitions(const CallPtr& call);

// Turns
void list_turns(const CallPtr& call);
/// Asks for the end of a turn, or of one of its calls.
void abort_turn(const CallPtr& call);

// What people are told
void list_alerts(const CallPtr& call);
void acknowledge_alert(const CallPtr& call);
void snooze_alert(const CallPtr& call);

// Questions to a model
void post_check(const CallPtr& call);
void get_check(const CallPtr& call);

}  // namespace watchdog::monitor
