// A row has what lists show of a session: the members of its progress document in short. A session
// in memory gets its row from the judge's case, and one that ended from its row of the store. Null
// stands for all that only a running session has. The notices are members that may be absent.
#include "core/session_row.h"

#include <algorithm>
#include <cmath>

#include "codec/progress.h"
#include "core/group_wait.h"
#include "judge/attention.h"
#include "judge/changed_at.h"
#include "judge/loose_ends.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

void write_text(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  text.empty() ? out.value(nullptr) : out.value(text);
}

void write_standing(JsonWriter& out, const Standing& standing, WallTime since) {
  out.field("state", name_of(standing.state)).field("attention", name_of(standing.attention));
  out.field("stateSince", since.time_since_epoch().count());
}

/// The assistant's last message while the session rests or needs input; otherwise null.
void write_last_message(JsonWriter& out, const Standing& standing, const Words& words) {
  const bool rests =
      standing.attention == Attention::resting || standing.attention == Attention::ready;
  const bool asks = standing.state == SessionState::needs_input;
  write_text(out, "lastMessage", rests || asks ? words.answer : "");
}

std::int64_t number(WallTime at) {
  return at.time_since_epoch().count();
}

/// Null where it was in no loop when it ended.
void write_wasted(JsonWriter& out, std::int32_t calls) {
  out.key("wastedCalls");
  calls > 0 ? out.value(std::int64_t{calls}) : out.value(nullptr);
}

/// Tokens as the agent counts them, or as the proxy saw them; cost where the agent reports it.
void write_usage(JsonWriter& out, const History& history) {
  double tokens = 0;
  for (const auto& [name, value] : *history.counters)
    if (name == "tokens" && std::isfinite(value)) tokens = value;
  double cost = 0;
  if (history.notes->budget.has()) {
    const auto& figures = history.notes->budget->figures;
    tokens = std::max(tokens, static_cast<double>(figures.tokens));
    cost = figures.cost;
  }
  constexpr double most = 1e15;
  out.key("tokens");
  tokens > 0 ? out.value(static_cast<std::int64_t>(std::min(tokens, most))) : out.value(nullptr);
  out.key("cost");
  cost > 0 ? out.value(cost) : out.value(nullptr);
}

}  // namespace

std::string session_row(std::string_view id, const Watched& watched, Instant now, WallTime wall) {
  const auto& history = watched.judged.history;
  const auto& health = watched.judged.health;
  const auto& notes = *history.notes;
  now = std::max(now, history.tick);
  const auto at = [&](Instant tick) { return number(wall - (now - tick)); };
  JsonWriter out;
  out.open_object().field("sessionId", id);
  write_title(out, id, *watched.description, *notes.words);
  out.raw(watched.description->members);
  const auto standing = standing_of(watched.judged, wall, watched.description->family);
  write_standing(out, standing, standing_since(watched.judged, now, wall));
  write_last_message(out, standing, *notes.words);
  out.field("lifecycle", name_of(history.lifecycle)).field("health", name_of(health.kind));
  out.field("healthSince", number(watched.judged.health_since));
  write_text(out, "reason", reason_of(watched.judged, now));
  write_text(out, "currentPhase", history.phase);
  out.key("server");
  write_server(out, watched.judged, now, wall);
  out.field("iteration", history.iteration).field("heartbeats", history.heartbeats);
  out.field("stateChanges", history.state_changes).key("lastChangeAt");
  history.state_changes > 0 ? out.value(number(changed_at(history, now, wall)))
                            : out.value(nullptr);
  out.key("lastHeartbeatAt");
  history.heartbeats > 0 ? out.value(at(history.last_beat)) : out.value(nullptr);
  out.key("tool");
  if (history.open_calls->empty()) {
    out.value(nullptr);
  } else {
    const auto& call = history.open_calls->back();
    out.open_object().field("name", call.name).field("startedAt", at(call.since));
    write_text(out, "command", call.notes->command);
    out.close_object();
  }
  write_usage(out, history);
  out.field("createdAt", number(watched.created)).key("endedAt");
  notes.outcome ? out.value(number(notes.outcome_at)) : out.value(nullptr);
  out.key("outcome");
  notes.outcome ? out.value(name_of(notes.outcome->kind)) : out.value(nullptr);
  write_wasted(out, notes.wasted_calls);
  write_text(out, "unfinished", unfinished_note(history));
  out.field("cancelling", notes.cancel.has_value()).field("now", number(wall)).close_object();
  return out.finish();
}

std::string session_row(const SessionRow& row, WallTime wall) {
  const bool ended = is_end(row.lifecycle);
  JsonWriter out;
  const auto description = description_of(row.spec);
  const Outcome outcome{.reason = row.outcome_reason, .error = row.error, .subject = row.subject};
  const bool settled = row.acknowledged || (ended && wall - row.updated >= end_fresh_for);
  const auto standing =
      standing_of({.lifecycle = row.lifecycle, .health = row.health, .settled = settled});
  out.open_object().field("sessionId", row.id);
  write_title(out, row.id, description, row.words);
  out.raw(description.members);
  write_standing(out, standing, row.updated);
  write_last_message(out, standing, row.words);
  out.field("lifecycle", name_of(row.lifecycle)).field("health", name_of(row.health));
  out.field("healthSince", number(row.updated));
  write_text(out, "reason",
             ended           ? end_in_words(outcome, row.wasted_calls)
             : row.head == 0 ? "No report yet"
                             : "");
  for (const auto name : {"currentPhase", "server", "iteration", "heartbeats", "stateChanges",
                          "lastChangeAt", "lastHeartbeatAt", "tool", "tokens", "cost"}) {
    out.field(name, nullptr);
  }
  out.field("createdAt", number(row.created)).key("endedAt");
  ended ? out.value(number(row.updated)) : out.value(nullptr);
  out.key("outcome");
  ended ? out.value(name_of(row.lifecycle)) : out.value(nullptr);
  write_wasted(out, row.wasted_calls);
  out.field("unfinished", nullptr);
  out.field("cancelling", false).field("now", number(wall)).close_object();
  return out.finish();
}

Result<std::string> session_row(Backend& backend, StoreReader& reader, const SessionRow& row,
                                WallTime wall) {
  const auto row_of = [&](const Watched& watched) -> Result<std::string> {
    const auto group = group_wait(backend, reader, row, watched);
    if (!group) return group.error();
    auto text = with_question(session_row(row.id, watched, backend.now(), wall),
                              backend.questions().of(row.id));
    return with_group_wait(std::move(text), *group);
  };
  if (const auto watched = backend.watched(row.id)) return row_of(*watched);
  if (is_end(row.lifecycle) || row.head == 0) return session_row(row, wall);
  const auto watched = look_up(backend, reader, row);
  if (!watched) return watched.error();
  return row_of(*watched);
}

}  // namespace watchdog::monitor
