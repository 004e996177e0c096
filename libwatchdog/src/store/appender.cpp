// Turns reports into events, in the order in which they come. `prepare` marks, redacts and cuts
// copies of the reports; it is pure and runs before the transaction. Within the transaction each
// event id is checked, the event inserted and the session's row updated. The number of a session's
// events is written once, at the end.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "codec/fields.h"
#include "codec/json.h"
#include "facts/ids.h"
#include "privacy/content.h"
#include "privacy/redaction.h"
#include "store/event_row.h"
#include "store/server.h"
#include "store/store_state.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

void write_request(JsonWriter& out, const CancelRequest& request) {
  out.open_object();
  if (!request.turn.empty()) out.field("turnId", request.turn);
  if (!request.call.empty()) out.field("toolId", request.call);
  out.field("by", request.by).field("reason", request.reason);
  out.field("at", request.at.time_since_epoch().count()).close_object();
}

/// `: labels, title`, for who may not read the session itself. Empty: neither text is an object.
std::string members_that_differ(const std::string& stored, const std::string& given) {
  const auto was = parse_json(stored);
  const auto is = parse_json(given);
  if (!was || !is || !was->is_object() || !is->is_object()) return {};
  std::set<std::string> names;
  for (const auto* one : {&*was, &*is})
    for (const auto& [name, value] : one->items())
      if (was->value(name, nlohmann::json()) != is->value(name, nlohmann::json()))
        names.insert(name);
  std::string text;
  for (const auto& name : names) text += (text.empty() ? ": " : ", ") + name;
  return text;
}

/// Makes a session's end a cancel if one was requested, whatever its agent reports. An agent that
/// states that it completed was done before it received the request. Returns true if the outcome
/// was changed.
bool end_as_cancelled(Outcome& outcome, const CancelRequest& request) {
  if (outcome.kind == OutcomeKind::cancelled) return false;
  if (outcome.kind == OutcomeKind::completed && outcome.stated) return false;
  outcome = {.kind = OutcomeKind::cancelled,
             .reason = std::string(reasons::cancelled),
             .error = request.reason,
             .subject = request.by};
  return true;
}

/// Both engines must read what is stored: U+0000 and bytes that are not UTF-8 become U+FFFD. In
/// what is stored as JSON the writer does the same.
void make_storable(Report& report) {
  std::string own;
  for (auto* text : {&report.name, &report.content, &report.event_id}) {
    const auto storable_text = storable(*text, own);
    if (storable_text.data() == own.data()) *text = own;
  }
}

SessionSpec without_secrets(SessionSpec spec) {
  redact(spec);
  return spec;
}

}  // namespace

PreparedBatch prepare(const Batch& batch, ContentLevel level) {
  PreparedBatch made{.batch = &batch, .level = level, .reports = batch.reports};
  for (auto& report : made.reports) {
    if (report.kind == ReportKind::heartbeat && !std::holds_alternative<Heartbeats>(report.detail))
      report.detail = Heartbeats{};
    const auto whole = report.content.size();
    const bool is_whole = is_kept_whole(report, level);
    mark(report);
    const auto sent = is_whole ? report.content : std::string();
    seal(report, level);
    make_storable(report);
    // A content that is stored as it was sent is marked when it is read.
    if (is_whole && report.content == sent && std::holds_alternative<Marks>(report.detail))
      report.detail = {};
    if (level == ContentLevel::preview && whole > preview_chars_max &&
        report.content.size() < whole)
      ++made.cut;
  }
  return made;
}

void Store::State::Appender::forget() {
  dirty.clear();
  addressed.clear();
  observer.dirty = false;
  heads.clear();
}

Head Store::State::Appender::head_from(const Statement& row) {
  Head head{.key = row.integer(0),
            .spec = row.text(1),
            .attempt = static_cast<std::int32_t>(row.integer(2)),
            .ended = !row.is_null(3),
            .directive = directive_from(row.text(4), row.text(7)),
            .turns = row.integer(8) == 1,
            .seq = row.integer(5),
            .events = row.integer(6)};
  std::string unused;
  if (auto spec = session_spec_from_json(head.spec, unused)) head.content = spec->content;
  return head;
}

Head* Store::State::Appender::find(const std::string& id) {
  if (const auto known = heads.find(id); known != heads.end()) return &known->second;
  if (absent.contains(id)) return nullptr;
  auto& query = log_.sql(
      "SELECT s.id, s.spec, s.attempt, s.ended_ms, s.cancel, h.seq, h.events, s.aborts, s.turns "
      "FROM sessions s LEFT JOIN heads h ON h.session = s.id WHERE s.name = ?");
  const ResetLater later(query);
  query.bind(1, std::string_view(id));
  if (!query.step()) return nullptr;
  return &heads.emplace(id, head_from(query)).first->second;
}

Head& Store::State::Appender::create(const std::string& id, const SessionSpec& spec, WallTime at) {
  absent.erase(id);
  Head head{.spec = watchdog::to_json(spec), .content = spec.content};
  auto& insert_session = log_.sql(
      "INSERT INTO sessions (name, parent, agent, spec, created_ms, attempt, lifecycle, health, "
      "updated_ms) VALUES (?, ?, ?, ?, ?, 1, 'running', 'unknown', ?) RETURNING id");
  insert_session.bind(1, std::string_view(id)).bind(2, spec.parent, true).bind(3, spec.agent, true);
  insert_session.bind(4, head.spec).bind(5, at.time_since_epoch().count());
  insert_session.bind(6, at.time_since_epoch().count());
  insert_session.step();
  head.key = insert_session.integer(0);
  insert_session.reset();
  for (const auto& [key, value] : spec.labels) {
    auto& insert_label = log_.sql("INSERT INTO labels (key, value, session) VALUES (?, ?, ?)");
    insert_label.bind(1, key).bind(2, value).bind(3, head.key);
    insert_label.run();
  }
  return heads.emplace(id, std::move(head)).first->second;
}

/// Numbers, stamps and stores one event.
Stamp Store::State::Appender::put(Head& head, const Report& report, bool late) {
  const Stamp stamp{.seq = log_.next_seq++,
                    .session = head.key,
                    .prev = head.seq,
                    .tick = log_.now,
                    .at = report.at.value_or(log_.wall),
                    .late = late,
                    .origin = origin_};
  insert_event(insert_, stamp, report);
  if (log_.server != nullptr && !report.event_id.empty())
    known_ids.insert(key_of_id(report.event_id, head.key));
  head.seq = stamp.seq;
  if (++head.events % block_events == 0) {
    auto& block = log_.sql("INSERT INTO blocks (session, seq) VALUES (?, ?)");
    block.bind(1, head.key).bind(2, head.seq);
    block.run();
  }
  if (!head.dirty) {
    head.dirty = true;
    dirty.push_back(&head);
  }
  return stamp;
}

/// Stores the heartbeats gathered so far: before any other event, and at the end.
void Store::State::Appender::put_beats(Head& head) {
  if (!head.beats) return;
  Report report;
  report.at = head.beats_at;
  report.detail = std::move(*head.beats);
  head.beats.reset();
  (void)put(head, report, head.ended);
}

void Store::State::Appender::fold_beats(Head& head, const Report& report) {
  Heartbeats beats = std::get<Heartbeats>(report.detail);
  std::erase_if(beats.counters, [](const auto& counter) { return !std::isfinite(counter.second); });
  const bool stamped = beats.first != Instant{};
  beats.first = stamped ? std::min(beats.first + log_.offset, log_.now) : log_.now;
  beats.last = stamped ? std::min(beats.last + log_.offset, log_.now) : log_.now;
  if (head.beats && !same_row(*head.beats, beats)) put_beats(head);
  if (!report.event_id.empty() || report.ts_ms || report.expect_quiet) {  // says more
    put_beats(head);
    Report single = report;
    single.detail = std::move(beats);
    (void)put(head, single, head.ended);
  } else if (head.beats) {
    absorb(*head.beats, beats);
  } else {
    head.beats = std::move(beats);
    head.beats_at = report.at;
    if (!head.dirty) {
      head.dirty = true;
      dirty.push_back(&head);
    }
  }
}

/// Updates the session's own row for an event.
void Store::State::Appender::touch_session(Head& head, const Stamp& stamp, const Report& report) {
  const auto at = stamp.at.time_since_epoch().count();
  if (!stamp.late) touch_turns(head, report);
  if (report.kind == ReportKind::start && head.ended) {
    head.ended = false;
    head.directive.cancel.reset();
    auto& reopen = log_.sql(
        "UPDATE sessions SET attempt = ?, lifecycle = 'running', ended_ms = NULL, "
        "outcome_reason = NULL, cancel = NULL, updated_ms = ? WHERE id = ?");
    reopen.bind(1, ++head.attempt).bind(2, at).bind(3, head.key);
    reopen.run();
  } else if (report.kind == ReportKind::end && !stamp.late) {
    const auto& outcome = std::get<Outcome>(report.detail);
    head.ended = true;
    // An agent that was taken for dead and comes back must still receive the cancel.
    const bool heard = outcome.kind != OutcomeKind::cancelled;
    if (heard) head.directive.cancel.reset();
    auto& end = log_.sql(
        "UPDATE sessions SET lifecycle = ?, ended_ms = ?, outcome_reason = ?, "
        "cancel = CASE WHEN ? = 1 THEN NULL ELSE cancel END, updated_ms = ? WHERE id = ?");
    end.bind(1, name_of(outcome.kind)).bind(2, at).bind(3, outcome.reason).bind(4, heard ? 1 : 0);
    end.bind(5, at).bind(6, head.key);
    end.run();
  } else if (report.kind == ReportKind::cancel && !stamp.late) {
    auto request = std::get<CancelRequest>(report.detail);
    request.at = stamp.at;
    addressed.push_back(head.key);
    if (!request.turn.empty()) return add_abort(head, std::move(request));
    JsonWriter text;
    write_request(text, request);
    head.directive.cancel = std::move(request);
    auto& cancel = log_.sql("UPDATE sessions SET cancel = ? WHERE id = ?");
    cancel.bind(1, text.text()).bind(2, head.key);
    cancel.run();
  }
}

/// The request needs no more delivery.
void Store::State::Appender::forget_cancel(Head& head) {
  head.directive.cancel.reset();
  auto& forget = log_.sql("UPDATE sessions SET cancel = NULL WHERE id = ?");
  forget.bind(1, head.key);
  forget.run();
}

/// A turn or call that is over need not be stopped.
void Store::State::Appender::touch_turns(Head& head, const Report& report) {
  auto& aborts = head.directive.aborts;
  const auto before = aborts.size();
  switch (report.kind) {
    case ReportKind::start:
    case ReportKind::end:
      aborts.clear();
      put_turns(head, false);
      break;
    case ReportKind::turn:
      if (report.name == turn_reports::turn_start) put_turns(head, true);
      if (report.name != turn_reports::turn_end) return;
      std::erase_if(aborts, [&](const auto& abort) { return abort.turn == report.call_id; });
      break;
    case ReportKind::tool_result:
    case ReportKind::error:
    case ReportKind::tool_timeout:
      std::erase_if(aborts, [&](const auto& abort) {
        return !abort.call.empty() && abort.call == report.call_id;
      });
      break;
    default:
      return;
  }
  if (aborts.size() != before) put_aborts(head);
}

/// Asked again, the first reason counts.
void Store::State::Appender::add_abort(Head& head, CancelRequest request) {
  auto& aborts = head.directive.aborts;
  const auto asked = [&](const CancelRequest& abort) {
    return abort.turn == request.turn && abort.call == request.call;
  };
  if (std::any_of(aborts.begin(), aborts.end(), asked)) return;
  if (aborts.size() == Directive::aborts_max) aborts.erase(aborts.begin());
  aborts.push_back(std::move(request));
  put_aborts(head);
}

void Store::State::Appender::put_aborts(const Head& head) {
  JsonWriter text;
  if (!head.directive.aborts.empty()) {
    text.open_array();
    for (const auto& abort : head.directive.aborts) write_request(text, abort);
    text.close_array();
  }
  auto& update = log_.sql("UPDATE sessions SET aborts = ? WHERE id = ?");
  update.bind(1, text.text(), true).bind(2, head.key);
  update.run();
}

/// Once a start, however many turns there are.
void Store::State::Appender::put_turns(Head& head, bool turns) {
  if (head.turns == turns) return;
  head.turns = turns;
  auto& update = log_.sql("UPDATE sessions SET turns = ? WHERE id = ?");
  update.bind(1, turns ? 1 : 0).bind(2, head.key);
  update.run();
}

bool Store::State::Appender::is_duplicate(const Head& head, const Report& report) {
  if (report.event_id.empty()) return false;
  if (log_.server != nullptr) return known_ids.contains(key_of_id(report.event_id, head.key));
  auto& query = log_.sql("SELECT 1 FROM events WHERE event_id = ? AND session = ?");
  const ResetLater later(query);
  query.bind(1, report.event_id).bind(2, head.key);
  return query.step();
}

/// Keeps by which other name another source calls the tool of a call that is stored.
void Store::State::Appender::put_also(const Head& head, const Report& report) {
  if (report.kind != ReportKind::tool_call || report.name.empty()) return;
  if (log_.server != nullptr) return put_also_on_server(head, report);
  auto& update = log_.sql(
      "UPDATE events SET facts = json_set(coalesce(facts, '{}'), '$.also', ?1) "
      "WHERE event_id = ?2 AND session = ?3 AND kind = ?4 AND name <> ?1");
  update.bind(1, report.name).bind(2, report.event_id).bind(3, head.key);
  update.bind(4, static_cast<std::int64_t>(report.kind));
  update.run();
}

std::vector<PreparedBatch> prepare_all(std::span<const Batch> batches,
                                       const std::unordered_map<std::string, Head>& heads) {
  std::vector<PreparedBatch> all;
  all.reserve(batches.size());
  for (const auto& batch : batches) {
    const auto known = heads.find(batch.session);
    const bool is_new = known == heads.end();
    all.push_back(prepare(batch, is_new ? batch.spec.content : known->second.content));
    if (is_new || batch.creation == Creation::demand) all.back().spec = without_secrets(batch.spec);
  }
  return all;
}

Result<Receipt> Store::State::Appender::append(PreparedBatch& given) {
  const auto& batch = *given.batch;
  if (!is_session_id(batch.session)) {
    return Error{ErrorCode::invalid, "sessionId must match [A-Za-z0-9._:@-]{1,128}", "sessionId"};
  }
  Head* head = find(batch.session);
  if (head == nullptr && !given.spec) given.spec = without_secrets(batch.spec);
  origin_ = batch.by;
  Receipt receipt;
  if (head == nullptr) {
    if (batch.creation == Creation::refuse) {
      return Error{ErrorCode::not_found, "unknown session " + batch.session, "sessionId"};
    }
    if (auto allowed = check(batch.spec); !allowed) return allowed.error();
    // Its first report may have waited: nothing is concluded of it from before it began.
    const bool came_late = !batch.reports.empty() && batch.reports.front().at;
    head = &create(batch.session, *given.spec,
                   came_late ? std::min(log_.wall, *batch.reports.front().at) : log_.wall);
    receipt.created = true;
  } else if (batch.creation == Creation::demand && head->spec != watchdog::to_json(*given.spec)) {
    return Error{ErrorCode::conflict,
                 "session " + batch.session + " exists and was made with other properties" +
                     members_that_differ(head->spec, watchdog::to_json(*given.spec)),
                 "sessionId"};
  }
  if (head->content != given.level) given = prepare(batch, head->content);  // the guess was wrong
  receipt.cut = given.cut;
  for (const auto& report : given.reports) {
    if (is_duplicate(*head, report)) {
      put_also(*head, report);
      ++receipt.duplicates;
      continue;
    }
    ++receipt.accepted;
    if (report.kind != ReportKind::start && head->ended) ++receipt.late;
    if (report.kind == ReportKind::heartbeat) {
      fold_beats(*head, report);
      continue;
    }
    put_beats(*head);
    if (std::holds_alternative<Outcome>(report.detail) && !head->ended) {
      put_end(*head, report);
      continue;
    }
    const auto stamp = put(*head, report, head->ended && report.kind != ReportKind::start);
    touch_session(*head, stamp, report);
  }
  put_beats(*head);
  receipt.key = head->key;
  receipt.last = head->seq;
  receipt.directive = head->directive;
  return receipt;
}

/// Stores how the session ended: what its agent reports, and what the store knows of it.
void Store::State::Appender::put_end(Head& head, Report report) {
  auto& outcome = std::get<Outcome>(report.detail);
  const bool heard = head.directive.cancel && end_as_cancelled(outcome, *head.directive.cancel);
  if (outcome.by_answer) outcome = outcome_by_answer(head, std::move(outcome));
  const auto stamp = put(head, report, false);
  touch_session(head, stamp, report);
  if (heard) forget_cancel(head);
}

void Store::State::Appender::put_heads() {
  auto& upsert = log_.sql(
      "INSERT INTO heads (session, seq, events) VALUES (?, ?, ?) ON CONFLICT "
      "(session) DO UPDATE SET seq = excluded.seq, events = excluded.events");
  // In order of their keys: neighbours share a page.
  std::sort(dirty.begin(), dirty.end(),
            [](const Head* a, const Head* b) { return a->key < b->key; });
  for (Head* head : dirty) {
    head->dirty = false;
    upsert.bind(1, head->key).bind(2, head->seq).bind(3, head->events);
    upsert.run();
  }
  dirty.clear();
}

void Store::State::Appender::put_absence(Millis gap) {
  log_.stamp();
  observer.seq = log_.reader.state_->head_of(observer_key);
  Report report;
  report.kind = ReportKind::observer;
  report.detail = ObserverGap{gap};
  origin_ = ReportOrigin::monitor;
  (void)put(observer, report, false);
  put_heads();
}

}  // namespace watchdog
