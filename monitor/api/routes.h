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
/// Many, a row each.
void list_sessions(const CallPtr& call);

// What happens, as it happens
void stream_all(const CallPtr& call);
void stream_session(const CallPtr& call);

// Their events and changes of health
void post_events(const CallPtr& call);
void get_events(const CallPtr& call);
void get_transitions(const CallPtr& call);

// What coding agents tell through their hooks
void post_hook(const CallPtr& call);

// Turns
void list_turns(const CallPtr& call);
/// Asks for the end of a turn, or of one of its calls.
void abort_turn(const CallPtr& call);

// Pages for people, and what they load
void get_sessions_page(const CallPtr& call);
void get_session_page(const CallPtr& call);
void get_asset(const CallPtr& call);

// Who asks, and who did what
void get_access(const CallPtr& call);
void post_login(const CallPtr& call);
void post_logout(const CallPtr& call);
void list_audit(const CallPtr& call);
void get_login_page(const CallPtr& call);
/// A browser without JavaScript.
void post_login_form(const CallPtr& call);

// Of the monitor itself
void get_metrics(const CallPtr& call);
void forget_session(const CallPtr& call);
void forget_sessions(const CallPtr& call);

// What people are told
void list_alerts(const CallPtr& call);
void acknowledge_alert(const CallPtr& call);
void snooze_alert(const CallPtr& call);

// Questions to a model
void post_check(const CallPtr& call);
void get_check(const CallPtr& call);

}  // namespace watchdog::monitor
