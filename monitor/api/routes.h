/// \file
/// The handlers of requests, by their paths. Each replies exactly once.
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
/// All that is known of a session, as an archive.
void get_bundle(const CallPtr& call);
/// A person's answer to what the session's agent asks.
void answer_question(const CallPtr& call);
/// Many sessions, one row per session.
void list_sessions(const CallPtr& call);
/// The changes of health of all sessions in the newest time.
void get_history(const CallPtr& call);
/// How many there are of each state.
void get_summary(const CallPtr& call);
/// Whether sessions are at work, in one word.
void get_activity(const CallPtr& call);

// Streams of events
void stream_all(const CallPtr& call);
void stream_session(const CallPtr& call);

// Their events and changes of health
void post_events(const CallPtr& call);
void get_events(const CallPtr& call);
void get_transitions(const CallPtr& call);

// Hooks of coding agents
void post_hook(const CallPtr& call);

// Rules that act on sessions
void get_recovery(const CallPtr& call);
void pause_recovery(const CallPtr& call);
void resume_recovery(const CallPtr& call);

// OpenTelemetry
void post_logs(const CallPtr& call);
void post_traces(const CallPtr& call);
void post_metrics(const CallPtr& call);
/// The session that telemetry of a trace names.
void get_trace(const CallPtr& call);
/// The answer while the store is full. Exporters only send again after some statuses.
[[nodiscard]] Response full_for_otlp(const Request& request);

/// The Model Context Protocol.
void serve_mcp(const CallPtr& call);

// Turns
void list_turns(const CallPtr& call);
/// Asks for the end of a turn, or of one of its calls.
void abort_turn(const CallPtr& call);

// Pages for people, and what they load
void get_sessions_page(const CallPtr& call);
void get_session_page(const CallPtr& call);
/// The pages of the alerts and of the last day. Scripts fill both pages.
void get_alerts_page(const CallPtr& call);
void get_overview_page(const CallPtr& call);
void get_asset(const CallPtr& call);
void get_schema(const CallPtr& call);

// The caller, and the audit log
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

// Alerts
void list_alerts(const CallPtr& call);
void acknowledge_alert(const CallPtr& call);
void snooze_alert(const CallPtr& call);
void test_channel(const CallPtr& call);
/// The page of a link in a message, and its act.
void get_answer(const CallPtr& call);
void post_answer(const CallPtr& call);

// Questions to a model
void post_check(const CallPtr& call);
void get_check(const CallPtr& call);

}  // namespace watchdog::monitor
