// Appends the document member by member, because it is written at every request. `description_of`
// serializes in advance what does not change while a session runs. Ticks become wall times by their
// distance from `now`, so `now` and `wall` must be the same moment. A member without a value is
// null and not absent.
#include "codec/progress.h"

#include <algorithm>
#include <cctype>

#include "codec/budget.h"
#include "judge/attention.h"
#include "judge/changed_at.h"
#include "judge/loose_ends.h"
#include "privacy/content.h"
#include "text/json_writer.h"

namespace watchdog {
namespace {

void write_outcome(JsonWriter& out, const Notes& notes) {
  out.key("outcome");
  if (!notes.outcome) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("kind", name_of(notes.outcome->kind));
  out.field("reason", notes.outcome->reason)
      .field("at", notes.outcome_at.time_since_epoch().count());
  const auto text = [&](const char* key, const std::string& value) {
    out.key(key);
    value.empty() ? out.value(nullptr) : out.value(value);
  };
  text("subject", notes.outcome->subject);
  text("error", notes.outcome->error);
  out.close_object();
}

void write_cancel(JsonWriter& out, const Notes& notes) {
  out.key("cancel");
  if (!notes.cancel) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("by", notes.cancel->by);
  out.field("reason", notes.cancel->reason);
  out.field("at", notes.cancel->at.time_since_epoch().count()).close_object();
}

void write_budget(JsonWriter& out, const Notes& notes) {
  out.key("budget");
  if (!notes.budget.has()) {
    out.value(nullptr);
    return;
  }
  out.open_object();
  write_figures_shown(out, notes.budget->figures);
  out.field("at", notes.budget->at.time_since_epoch().count()).close_object();
}

void write_explanation(JsonWriter& out, const std::optional<Explanation>& explained_by) {
  out.key("explainedBy");
  if (!explained_by) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("sessionId", explained_by->session);
  out.field("health", name_of(explained_by->health));
  out.field("reason", explained_by->reason).close_object();
}

void write_turns(JsonWriter& out, const History& history, Instant now) {
  out.key("turns").open_array();
  for (const auto& turn : *history.notes->turns) {
    out.open_object();
    write_turn(out, turn, newest_call(history, turn.id), now);
    out.close_object();
  }
  out.close_array();
}

void write_sources(JsonWriter& out, const History& history) {
  out.key("sources").open_array();
  for (const auto& [origin, reports, first, last, told] : history.sources) {
    out.open_object().field("source", name_of(origin)).field("reports", reports);
    out.field("firstAt", first.time_since_epoch().count());
    out.field("lastAt", last.time_since_epoch().count()).key("told").open_array();
    for (std::size_t at = 0; at < std::size(Names<Told>::all); ++at)
      if ((told >> at & 1U) != 0) out.value(Names<Told>::all[at]);
    out.close_array().close_object();
  }
  out.close_array();
}

/// Null where there is nothing to say.
void write_text(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  text.empty() ? out.value(nullptr) : out.value(text);
}

void write_estimate(JsonWriter& out, const std::optional<Estimate>& estimate) {
  out.key("estimate");
  if (!estimate) {
    out.value(nullptr);
    return;
  }
  out.open_object().field("calls", estimate->calls).key("unfinished");
  if (const auto& unfinished = estimate->unfinished) {
    out.open_object().field("seen", unfinished->seen).field("share", unfinished->share);
    out.field("low", unfinished->low).field("high", unfinished->high);
    out.field("text", unfinished->text).close_object();
  } else {
    out.value(nullptr);
  }
  out.key("callsLeft");
  if (const auto& left = estimate->calls_left) {
    out.open_object().field("low", left->low).field("high", left->high).field("seen", left->seen);
    out.field("coverage", left->coverage).field("text", left->text).close_object();
  } else {
    out.value(nullptr);
  }
  out.close_object();
}

}  // namespace

void write_turn(JsonWriter& out, const OpenTurn& turn, const OpenCall* running, Instant now) {
  out.field("turnId", turn.id);
  write_text(out, "parentTurnId", turn.parent);
  out.field("depth", turn.depth).field("startedAt", turn.at.time_since_epoch().count());
  out.field("elapsedMs", (now - turn.since).count());
  write_text(out, "currentTool",
             running == nullptr ? std::string_view() : std::string_view(running->name));
  write_text(out, "currentToolId",
             running == nullptr ? std::string_view() : std::string_view(running->call_id));
  out.field("toolCallCount", turn.calls).field("aborting", turn.aborting);
}

Description description_of(const SessionSpec& spec) {
  Description description{.agent = spec.agent, .family = family_of(spec)};
  const auto& given = spec.title.empty() ? spec.task : spec.title;
  const auto begin = std::min(given.find_first_not_of(" \t\r\n"), given.size());
  const auto line =
      std::string_view(given).substr(begin, given.find_first_of("\r\n", begin) - begin);
  description.title = first_characters(line, title_chars_max);
  if (const auto path = spec.labels.find("cwd"); path != spec.labels.end()) {
    const auto& text = path->second;
    const auto end = text.find_last_not_of('/') + 1;
    if (end > 0)
      description.directory = text.substr(0, end).substr(text.find_last_of('/', end - 1) + 1);
  }
  JsonWriter out;
  write_text(out, "parentSessionId", spec.parent);
  write_text(out, "agent", spec.agent);
  write_text(out, "task", spec.task);
  out.key("labels").open_object();
  for (const auto& [key, value] : spec.labels) out.field(key, value);
  out.close_object();
  description.members = out.finish();
  return description;
}

std::string title_of(std::string_view session_id, const Description& description,
                     const Words& words) {
  if (!description.title.empty()) return description.title;
  if (!words.prompt.empty()) return words.prompt;
  const auto& agent = description.agent;
  const auto& directory = description.directory;
  if (agent.empty() && directory.empty()) return std::string(short_id(session_id));
  return agent + (agent.empty() || directory.empty() ? "" : " in ") + directory;
}

std::string_view short_id(std::string_view session_id) noexcept {
  constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  constexpr std::size_t shown = 8;
  if (session_id.size() < shape.size()) return session_id;
  // The suffix after a UUID names a subagent.
  for (std::size_t at = 0; at < shape.size(); ++at) {
    const bool is_digit = std::isxdigit(static_cast<unsigned char>(session_id[at])) != 0;
    if (shape[at] == '-' ? session_id[at] != '-' : !is_digit) return session_id;
  }
  return session_id.size() == shape.size() ? session_id.substr(0, shown) : session_id;
}

void write_title(JsonWriter& out, std::string_view session_id, const Description& description,
                 const Words& words) {
  out.field("title", title_of(session_id, description, words));
  out.field("shortId", short_id(session_id));
  write_text(out, "directory", description.directory);
}

void write_evidence(JsonWriter& out, const Health& health) {
  out.open_array();
  for (std::size_t at = 0; at < health.evidence.size(); ++at) {
    if (health.evidence[at] == 0) continue;
    out.open_object().field("seq", health.evidence[at]);
    out.field("note", evidence_note(health, at)).close_object();
  }
  out.close_array();
}

void write_server(JsonWriter& out, const Case& judged, Instant now, WallTime wall) {
  const auto* note = server_note(judged.history);
  if (note == nullptr || now >= server_known_until(judged.history, *judged.policy)) {
    out.value(nullptr);
    return;
  }
  const auto& [state, done, total, left] = note->evidence;
  out.open_object().field("state", name_of(state)).field("done", done).key("total");
  total > 0 ? out.value(total) : out.value(nullptr);
  out.key("leftMs");
  left ? out.value(std::int64_t{left->count()}) : out.value(nullptr);
  out.field("since", (wall - (now - note->since)).time_since_epoch().count());
  write_text(out, "why", note->why);
  out.close_object();
}

std::string progress_document(std::string_view session_id, const Case& judged,
                              const Description& description, Instant now, WallTime wall,
                              const std::optional<Explanation>& explained_by,
                              const std::optional<Estimate>& estimate) {
  const History& history = judged.history;
  const Health& health = judged.health;
  const bool ended = is_end(history.lifecycle);
  const auto wall_of = [&](Instant tick) {
    return (wall - (now - tick)).time_since_epoch().count();
  };

  JsonWriter out;
  out.open_object().field("sessionId", session_id);
  write_title(out, session_id, description, *history.notes->words);
  out.field("alive", is_alive(history, *judged.policy, now));
  const bool stuck =
      !ended && (health.kind == HealthKind::stuck || health.kind == HealthKind::looping);
  out.field("stuck", stuck);
  out.key("progress").open_object();
  out.field("heartbeats", history.heartbeats).field("stateChanges", history.state_changes);
  out.key("lastChange");
  if (history.state_changes > 0) {
    out.value(history.last_change_type);
    out.field("lastChangeAgo", (wall - changed_at(history, now, wall)).count());
  } else {
    out.value(nullptr).field("lastChangeAgo", nullptr);
  }
  out.close_object();
  out.key("currentPhase");
  history.phase.empty() ? out.value(nullptr) : out.value(history.phase);
  out.field("iteration", history.iteration).key("server");
  write_server(out, judged, now, wall);

  const auto standing = standing_of(judged, wall, description.family);
  out.field("state", name_of(standing.state)).field("attention", name_of(standing.attention));
  out.field("stateSince", standing_since(judged, now, wall).time_since_epoch().count());
  out.field("lifecycle", name_of(history.lifecycle)).field("health", name_of(health.kind));
  out.field("healthSince", judged.health_since.time_since_epoch().count());
  out.field("reason", reason_of(judged, now));
  out.key("stuckBy");
  stuck ? out.value(name_of(health.pattern)) : out.value(nullptr);
  out.key("evidence");
  write_evidence(out, health);
  out.key("validUntil");
  health.valid_until == never ? out.value(nullptr) : out.value(wall_of(health.valid_until));
  out.key("waitingFor");
  const bool waits = history.lifecycle == Lifecycle::waiting && !history.notes->waiting_for.empty();
  waits ? out.value(history.notes->waiting_for) : out.value(nullptr);
  out.key("waitUntil");
  const auto& until = history.notes->wait_until;
  waits&& until ? out.value(until->time_since_epoch().count()) : out.value(nullptr);
  write_text(out, "waitProvider", waits ? history.notes->wait_provider : std::string());
  write_explanation(out, explained_by);
  write_outcome(out, *history.notes);
  out.key("wastedCalls");
  history.notes->wasted_calls > 0 ? out.value(std::int64_t{history.notes->wasted_calls})
                                  : out.value(nullptr);
  write_text(out, "unfinished", unfinished_note(history));
  write_estimate(out, estimate);
  out.raw(description.members);
  write_text(out, "lastMessage", history.notes->words->answer);
  out.field("attempt", history.attempt);
  write_budget(out, *history.notes);
  write_cancel(out, *history.notes);
  write_turns(out, history, now);
  out.key("tools").open_array();
  for (const auto& call : *history.open_calls) {
    out.open_object().field("name", call.name);
    write_text(out, "callId", call.call_id);
    write_text(out, "turnId", call.notes->turn);
    out.field("startedAt", wall_of(call.since)).field("elapsedMs", (now - call.since).count());
    write_text(out, "message", call.notes->said);
    write_text(out, "command", call.notes->command);
    out.close_object();
  }
  out.close_array();
  write_sources(out, history);
  out.field("lastSeq", history.seq).close_object();
  return out.finish();
}

}  // namespace watchdog
