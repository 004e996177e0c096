/// \file
/// The progress document: what anybody who asks is told about a session.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "watchdog/case.h"
#include "watchdog/json_writer.h"
#include "watchdog/session.h"
#include "watchdog/time.h"

namespace watchdog {

/// The part of the document that does not change while a session runs: parent, agent, task, labels,
/// as JSON members without braces.
[[nodiscard]] std::string description_of(const SessionSpec& spec);

/// The events that prove a health, each with what it shows, as an array.
void write_evidence(JsonWriter& out, const Health& health);

/// A turn's members without braces, as everybody who asks is told; `running`: its newest call, or
/// null.
void write_turn(JsonWriter& out, const OpenTurn& turn, const OpenCall* running, Instant now);

/// What the model's server does, as an object; null where nothing is known by now. `now` and `wall`
/// are the same moment on both clocks.
void write_server(JsonWriter& out, const Case& judged, Instant now, WallTime wall);

/// Another session, whose health explains why one waits. A plain value.
struct Explanation {
  std::string session;
  HealthKind health = HealthKind::unknown;
  std::string reason;
};

/// The whole document as JSON. `now` and `wall` are the same moment on both clocks. REQUIRES: `now`
/// not before the newest event.
[[nodiscard]] std::string progress_document(std::string_view session_id, const Case& judged,
                                            std::string_view description, Instant now,
                                            WallTime wall,
                                            const std::optional<Explanation>& explained_by = {});

}  // namespace watchdog
