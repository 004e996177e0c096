/// \file
/// How long a session worked between two reports: the time without pauses. Whatever learns what is
/// usual in a session learns from this, never from the mere difference of two instants. A pause is
/// a sleep of the machine or another absence of the observer, a declared wait, or a restart. Pure.
#pragma once

#include <optional>

#include "watchdog/history.h"

namespace watchdog {

/// Returns how long the session has been at its present activity. Returns nothing if that is not
/// known: it rested, or it changes for the first time, or an absence left less than a second.
[[nodiscard]] std::optional<Millis> worked_since_pace(const History& history, Instant now) noexcept;

/// Returns how long a call has been running. Returns nothing as above, or if it waited for a person
/// until now.
[[nodiscard]] std::optional<Millis> worked_in(const History& history, const OpenCall& call,
                                              Instant now) noexcept;

/// The session begins to wait: from now until `end_pause` it does not work.
void begin_pause(History& history, Instant now);

/// The wait, or a rest, is over. After a wait the present activity, and each open call that waited,
/// are as old as they were when it began. After a rest the activity is new.
void end_pause(History& history, Instant now);

/// Takes a row of heartbeats of a helper into what is usual between them.
void learn_gaps(History& history, const Heartbeats& beats, std::int64_t periodic);

/// A new process was started: the time since its last heartbeat says nothing.
void forget_gap(History& history) noexcept;

/// Returns the longest usual time between two heartbeats of a helper; 0: none is known.
[[nodiscard]] Millis longest_usual_gap(const History& history) noexcept;

}  // namespace watchdog
