#include "api/session_row.h"

#include <algorithm>

#include "watchdog/json_writer.h"
#include "watchdog/progress.h"

namespace watchdog::monitor {
namespace {

void write_text(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  text.empty() ? out.value(nullptr) : out.value(text);
}

std::int64_t number(WallTime at) {
  return at.time_since_epoch().count();
}

}  // namespace

std::string session_row(std::string_view id, const Watched& watched, Instant now, WallTime wall) {
  const auto& history = watched.judged.history;
  const auto& health = watched.judged.health;
  const auto& notes = *history.notes;
  now = std::max(now, history.tick);
  const auto at = [&](Instant tick) { return number(wall - (now - tick)); };
  JsonWriter out;
  out.open_object().field("sessionId", id).raw(*watched.description);
  out.field("lifecycle", name_of(history.lifecycle)).field("health", name_of(health.kind));
  out.field("healthSince", number(watched.judged.health_since));
  write_text(
      out, "reason",
      notes.outcome ? notes.outcome->reason : reason_of(health, history, *watched.judged.policy));
  write_text(out, "currentPhase", history.phase);
  out.key("server");
  write_server(out, watched.judged, now, wall);
  out.field("iteration", history.iteration).field("heartbeats", history.heartbeats);
  out.field("stateChanges", history.state_changes).key("lastChangeAt");
  history.state_changes > 0 ? out.value(at(history.last_change)) : out.value(nullptr);
  out.key("lastHeartbeatAt");
  history.heartbeats > 0 ? out.value(at(history.last_beat)) : out.value(nullptr);
  out.key("tool");
  if (history.open_calls->empty()) {
    out.value(nullptr);
  } else {
    const auto& call = history.open_calls->back();
    out.open_object().field("name", call.name).field("startedAt", at(call.since)).close_object();
  }
  out.field("createdAt", number(watched.created)).key("endedAt");
  notes.outcome ? out.value(number(notes.outcome_at)) : out.value(nullptr);
  out.key("outcome");
  notes.outcome ? out.value(name_of(notes.outcome->kind)) : out.value(nullptr);
  out.field("cancelling", notes.cancel.has_value()).field("now", number(wall)).close_object();
  return out.take();
}

std::string session_row(const SessionRow& row, WallTime wall) {
  const bool ended = is_end(row.lifecycle);
  JsonWriter out;
  out.open_object().field("sessionId", row.id).raw(description_of(row.spec));
  out.field("lifecycle", name_of(row.lifecycle)).field("health", name_of(row.health));
  out.field("healthSince", number(row.updated));
  write_text(out, "reason",
             ended           ? row.outcome_reason
             : row.head == 0 ? "it has not reported anything yet"
                             : "");
  for (const auto name : {"currentPhase", "server", "iteration", "heartbeats", "stateChanges",
                          "lastChangeAt", "lastHeartbeatAt", "tool"}) {
    out.field(name, nullptr);
  }
  out.field("createdAt", number(row.created)).key("endedAt");
  ended ? out.value(number(row.updated)) : out.value(nullptr);
  out.key("outcome");
  ended ? out.value(name_of(row.lifecycle)) : out.value(nullptr);
  out.field("cancelling", false).field("now", number(wall)).close_object();
  return out.take();
}

std::string session_row(const Backend& backend, const SessionRow& row, WallTime wall) {
  if (const auto watched = backend.watched(row.id)) {
    return session_row(row.id, *watched, backend.now(), wall);
  }
  return session_row(row, wall);
}

}  // namespace watchdog::monitor
