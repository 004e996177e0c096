// Appends batches. `append` takes the writers' lock and stamps one tick for the transaction. For
// each report it checks the event id, seals the report, updates the session's row and inserts the
// event. The writer's cached state of sessions is valid only until another process commits. After
// any SQL error the writer drops it and reads it again. What only the judge of a file writes is in
// files of their own: conclusions, alerts, audit, retention and erasure.
#include "store/store.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "codec/facts.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "facts/ids.h"
#include "privacy/content.h"
#include "privacy/redaction.h"
#include "store/change_notifier.h"
#include "store/event_row.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/reader_state.h"
#include "store/store_state.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

constexpr std::string_view memory = ":memory:";

void write_request(JsonWriter& out, const CancelRequest& request) {
  out.open_object();
  if (!request.turn.empty()) out.field("turnId", request.turn);
  if (!request.call.empty()) out.field("toolId", request.call);
  out.field("by", request.by).field("reason", request.reason);
  out.field("at", request.at.time_since_epoch().count()).close_object();
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

}  // namespace

Store::State::State(Options chosen, std::shared_ptr<Database> opened)
    : options(std::move(chosen)),
      database(std::move(opened)),
      server(database->server()),
      insert(database->prepare(insert_event_sql)),
      reader(StoreReader(std::make_unique<StoreReader::State>(database))) {}

Store::State::~State() {
  if (fork_generation() != generation) {
    insert.abandon();  // the reader abandons the connection
  } else if (!files.in_place()) {
    if (lock) lock->lock();
    (void)save_log();
    if (lock) lock->unlock();
  }
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;
bool Store::close() {
  if (!state_ || fork_generation() != state_->generation) return false;
  if (state_->lock) state_->lock->lock();
  const bool kept = state_->files.in_place() || state_->save_log();
  if (state_->lock) state_->lock->unlock();
  state_.reset();
  return kept;
}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Result<Store> Store::open_on_server(Options options) {
  auto server = open_server(options.database, true);
  if (!server) return server.error();
  try {
    if (options.create) {
      (*server)->prepare_tables();
    } else {
      (*server)->check_tables();
    }
    auto database = std::make_shared<Database>(options.database.string(), std::move(*server),
                                               OpenMode::read_write_create);
    auto state = std::make_unique<State>(std::move(options), std::move(database));
    auto settled = state->in_turn<bool>([&]() -> Result<bool> {
      if (!state->has_server_time()) state->settle_boot();
      state->settle_leap();
      return true;
    });
    if (!settled) return settled.error();
    return Store(std::move(state));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

Result<Store> Store::open(Options options) {
  if (is_server_url(options.database)) return open_on_server(std::move(options));
  const bool on_disk = options.database != memory;
  if (on_disk) {
    std::error_code trouble;
    if (!options.create && !std::filesystem::exists(options.database, trouble)) {
      return Error{ErrorCode::not_found, "there is no database " + options.database.string()};
    }
    if (auto made = make_file(options.database); !made) return made.error();
  }
  try {
    std::optional<FileLock> lock;
    if (on_disk) {
      auto opened = FileLock::open(real_file(options.database).string() + "-writer");
      if (!opened) return opened.error();
      lock = std::move(*opened);
      lock->lock();  // tables are made once
    }
    auto database =
        std::make_shared<Database>(options.database.string(), OpenMode::read_write_create);
    prepare_schema(*database, OpenMode::read_write_create);
    auto state = std::make_unique<State>(std::move(options), std::move(database));
    state->lock = std::move(lock);
    state->settle_time();
    if (on_disk) {
      state->notifier.emplace(state->options.database);
      auto files = StoreFiles::of(state->options.database, *state->database);
      if (!files) {
        state->database->leave_log();
        return files.error();
      }
      state->files = std::move(*files);
    }
    if (state->lock) state->lock->unlock();
    return Store(std::move(state));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

/// Finds or makes this boot's offset, such that ticks continue above everything in the file.
void Store::State::settle_time() {
  Transaction transaction(*database);
  settle_boot();
  transaction.commit();
  settle_leap();
}

/// REQUIRES: the transaction under way.
void Store::State::settle_boot() {
  const Instant last = reader.state_->latest_tick();
  const auto boot_id = options.clock->boot_id();
  const auto known = reader.tick_offset(boot_id);
  if (!known) throw SqlFailure{known.error()};
  if (*known) {
    offset = **known;
  } else {
    // A file's first tick equals the wall clock, so that ticks can be read by people.
    const auto today = options.clock->wall().time_since_epoch();
    offset = std::max(today, last.time_since_epoch()) - options.clock->since_boot();
    auto& remember = sql("INSERT INTO boots (boot_id, offset_ms) VALUES (?, ?)");
    remember.bind(1, std::string_view(boot_id)).bind(2, offset.count());
    remember.run();
    const Instant begins{options.clock->since_boot() + offset};
    if (last != Instant{} && begins - last > clocks_differ_max) {
      auto& remember_leap =
          sql("INSERT INTO meta (key, value) VALUES ('leap_tick_ms', ?) ON CONFLICT (key) DO "
              "UPDATE SET value = excluded.value");
      remember_leap.bind(1, begins.time_since_epoch().count());
      remember_leap.run();
    }
  }
}

void Store::State::settle_leap() {
  auto& newest_leap = sql("SELECT value FROM meta WHERE key = 'leap_tick_ms'");
  const ResetLater later(newest_leap);
  if (newest_leap.step()) retainer.leap = Instant{Millis{newest_leap.integer(0)}};
}

/// After a commit of another process, the cached state must be read again.
void Store::State::look_again() {
  const auto version = database->pragma("data_version");
  if (version == seen_version) return;
  seen_version = version;
  heads.clear();
  const auto newest = reader.newest();
  if (!newest) throw SqlFailure{newest.error()};
  last_tick = std::max(last_tick, reader.state_->latest_tick());
  auto& floor = sql("SELECT value FROM meta WHERE key = 'next_seq'");
  next_seq = std::max(newest->first + 1, floor.step() ? floor.integer(0) : Seq{1});
  floor.reset();
}

/// The present state of the tables, at the begin of a turn on a server.
void Store::State::begin_with(const ServerTurn& turn) {
  absent.clear();
  known_ids.clear();
  durable = true;
  if (turn.number != seen_version) heads.clear();
  if (heads.size() > heads_max) heads.clear();
  seen_version = turn.number;
  next_seq = turn.next_seq;
  if (turn.server_came_back) next_seq += seqs_lost_max;
  last_tick = std::max(last_tick, turn.last_tick);
  turn_clock = has_server_time() ? turn.clock : options.clock->wall().time_since_epoch();
  if (has_server_time()) offset = turn.clock - options.clock->since_boot();
  if (has_server_time()) wall_offset = turn.wall - options.clock->since_boot();
}

/// After a failure the cached state may be wrong.
void Store::State::forget() {
  seen_version = -1;
  dirty.clear();
  addressed.clear();
  observer.dirty = false;
  heads.clear();
  tally_written = tally.empty();
}

bool Store::State::save_log() {
  database->leave_log();
  if (saved) return true;
  if (!files.can_save_log()) return false;
  try {
    if (database->pragma("wal_checkpoint(TRUNCATE)") != 0) return false;
  } catch (const SqlFailure&) {
    return false;
  }
  files.empty_new_log();
  return saved = true;
}

Error Store::State::replaced() const {
  return {ErrorCode::unavailable,
          "database " + options.database.string() +
              ": the file or its log (-wal) was removed or replaced while it was open, so this was "
              "not stored; try again"};
}

Head Store::State::head_from(const Statement& row) {
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

Head* Store::State::find(const std::string& id) {
  if (const auto known = heads.find(id); known != heads.end()) return &known->second;
  if (absent.contains(id)) return nullptr;
  auto& query = sql(
      "SELECT s.id, s.spec, s.attempt, s.ended_ms, s.cancel, h.seq, h.events, s.aborts, s.turns "
      "FROM sessions s LEFT JOIN heads h ON h.session = s.id WHERE s.name = ?");
  const ResetLater later(query);
  query.bind(1, std::string_view(id));
  if (!query.step()) return nullptr;
  return &heads.emplace(id, head_from(query)).first->second;
}

Head& Store::State::create(const std::string& id, const SessionSpec& spec, WallTime at) {
  absent.erase(id);
  Head head{.spec = watchdog::to_json(spec), .content = spec.content};
  auto& insert_session = sql(
      "INSERT INTO sessions (name, parent, agent, spec, created_ms, attempt, lifecycle, health, "
      "updated_ms) VALUES (?, ?, ?, ?, ?, 1, 'running', 'unknown', ?) RETURNING id");
  insert_session.bind(1, std::string_view(id)).bind(2, spec.parent, true).bind(3, spec.agent, true);
  insert_session.bind(4, head.spec).bind(5, at.time_since_epoch().count());
  insert_session.bind(6, at.time_since_epoch().count());
  insert_session.step();
  head.key = insert_session.integer(0);
  insert_session.reset();
  for (const auto& [key, value] : spec.labels) {
    auto& insert_label = sql("INSERT INTO labels (key, value, session) VALUES (?, ?, ?)");
    insert_label.bind(1, key).bind(2, value).bind(3, head.key);
    insert_label.run();
  }
  return heads.emplace(id, std::move(head)).first->second;
}

/// Numbers, stamps and stores one event.
Stamp Store::State::put(Head& head, const Report& report, bool late) {
  const Stamp stamp{.seq = next_seq++,
                    .session = head.key,
                    .prev = head.seq,
                    .tick = now,
                    .at = report.at.value_or(wall),
                    .late = late,
                    .origin = origin};
  insert_event(insert, stamp, report);
  if (server != nullptr && !report.event_id.empty())
    known_ids.insert(key_of_id(report.event_id, head.key));
  head.seq = stamp.seq;
  if (++head.events % block_events == 0) {
    auto& block = sql("INSERT INTO blocks (session, seq) VALUES (?, ?)");
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
void Store::State::put_beats(Head& head) {
  if (!head.beats) return;
  Report report;
  report.at = head.beats_at;
  report.detail = std::move(*head.beats);
  head.beats.reset();
  (void)put(head, report, head.ended);
}

void Store::State::fold_beats(Head& head, const Report& report) {
  Heartbeats beats = std::get<Heartbeats>(report.detail);
  std::erase_if(beats.counters, [](const auto& counter) { return !std::isfinite(counter.second); });
  const bool stamped = beats.first != Instant{};
  beats.first = stamped ? std::min(beats.first + offset, now) : now;
  beats.last = stamped ? std::min(beats.last + offset, now) : now;
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
void Store::State::touch_session(Head& head, const Stamp& stamp, const Report& report) {
  const auto at = stamp.at.time_since_epoch().count();
  if (!stamp.late) touch_turns(head, report);
  if (report.kind == ReportKind::start && head.ended) {
    head.ended = false;
    head.directive.cancel.reset();
    auto& reopen =
        sql("UPDATE sessions SET attempt = ?, lifecycle = 'running', ended_ms = NULL, "
            "outcome_reason = NULL, cancel = NULL, updated_ms = ? WHERE id = ?");
    reopen.bind(1, ++head.attempt).bind(2, at).bind(3, head.key);
    reopen.run();
  } else if (report.kind == ReportKind::end && !stamp.late) {
    const auto& outcome = std::get<Outcome>(report.detail);
    head.ended = true;
    // An agent that was taken for dead and comes back must still receive the cancel.
    const bool heard = outcome.kind != OutcomeKind::cancelled;
    if (heard) head.directive.cancel.reset();
    auto& end =
        sql("UPDATE sessions SET lifecycle = ?, ended_ms = ?, outcome_reason = ?, "
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
    auto& cancel = sql("UPDATE sessions SET cancel = ? WHERE id = ?");
    cancel.bind(1, text.text()).bind(2, head.key);
    cancel.run();
  }
}

/// The request needs no more delivery.
void Store::State::forget_cancel(Head& head) {
  head.directive.cancel.reset();
  auto& forget = sql("UPDATE sessions SET cancel = NULL WHERE id = ?");
  forget.bind(1, head.key);
  forget.run();
}

/// A turn or call that is over need not be stopped.
void Store::State::touch_turns(Head& head, const Report& report) {
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
void Store::State::add_abort(Head& head, CancelRequest request) {
  auto& aborts = head.directive.aborts;
  const auto asked = [&](const CancelRequest& abort) {
    return abort.turn == request.turn && abort.call == request.call;
  };
  if (std::any_of(aborts.begin(), aborts.end(), asked)) return;
  if (aborts.size() == Directive::aborts_max) aborts.erase(aborts.begin());
  aborts.push_back(std::move(request));
  put_aborts(head);
}

void Store::State::put_aborts(const Head& head) {
  JsonWriter text;
  if (!head.directive.aborts.empty()) {
    text.open_array();
    for (const auto& abort : head.directive.aborts) write_request(text, abort);
    text.close_array();
  }
  auto& update = sql("UPDATE sessions SET aborts = ? WHERE id = ?");
  update.bind(1, text.text(), true).bind(2, head.key);
  update.run();
}

/// Once a start, however many turns there are.
void Store::State::put_turns(Head& head, bool turns) {
  if (head.turns == turns) return;
  head.turns = turns;
  auto& update = sql("UPDATE sessions SET turns = ? WHERE id = ?");
  update.bind(1, turns ? 1 : 0).bind(2, head.key);
  update.run();
}

bool Store::State::is_duplicate(const Head& head, const Report& report) {
  if (report.event_id.empty()) return false;
  if (server != nullptr) return known_ids.contains(key_of_id(report.event_id, head.key));
  auto& query = sql("SELECT 1 FROM events WHERE event_id = ? AND session = ?");
  const ResetLater later(query);
  query.bind(1, report.event_id).bind(2, head.key);
  return query.step();
}

/// Keeps by which other name another source calls the tool of a call that is stored.
void Store::State::put_also(const Head& head, const Report& report) {
  if (report.kind != ReportKind::tool_call || report.name.empty()) return;
  if (server != nullptr) return put_also_on_server(head, report);
  auto& update =
      sql("UPDATE events SET facts = json_set(coalesce(facts, '{}'), '$.also', ?1) "
          "WHERE event_id = ?2 AND session = ?3 AND kind = ?4 AND name <> ?1");
  update.bind(1, report.name).bind(2, report.event_id).bind(3, head.key);
  update.bind(4, static_cast<std::int64_t>(report.kind));
  update.run();
}

Result<Receipt> Store::State::append(Batch& batch) {
  if (!is_session_id(batch.session)) {
    return Error{ErrorCode::invalid, "sessionId must match [A-Za-z0-9._:@-]{1,128}", "sessionId"};
  }
  Head* head = find(batch.session);
  origin = batch.by;
  Receipt receipt;
  if (head == nullptr) {
    if (batch.creation == Creation::refuse) {
      return Error{ErrorCode::not_found, "there is no session " + batch.session, "sessionId"};
    }
    if (auto allowed = check(batch.spec); !allowed) return allowed.error();
    redact(batch.spec);
    // Its first report may have waited: nothing is concluded of it from before it began.
    const bool came_late = !batch.reports.empty() && batch.reports.front().at;
    head = &create(batch.session, batch.spec,
                   came_late ? std::min(wall, *batch.reports.front().at) : wall);
    receipt.created = true;
  } else if (batch.creation == Creation::demand) {
    redact(batch.spec);
    if (head->spec != watchdog::to_json(batch.spec)) {
      return Error{
          ErrorCode::conflict,
          "session " + batch.session + " exists and was made with other properties: " + head->spec,
          "sessionId"};
    }
  }
  for (auto& report : batch.reports) {
    if (!is_kept_whole(report, head->content)) {
      mark(report);
    } else if (std::holds_alternative<Marks>(report.detail)) {
      report.detail = {};
    }
    bool heard = false;  // the agent ended by itself
    if (auto* outcome = std::get_if<Outcome>(&report.detail);
        outcome != nullptr && !head->ended && head->directive.cancel)
      heard = end_as_cancelled(*outcome, *head->directive.cancel);
    if (auto* outcome = std::get_if<Outcome>(&report.detail);
        outcome != nullptr && outcome->by_answer && !head->ended)
      *outcome = outcome_by_answer(*head, std::move(*outcome));
    const auto whole = report.content.size();
    seal(report, head->content);
    if (head->content == ContentLevel::preview && whole > preview_chars_max &&
        report.content.size() < whole)
      ++receipt.cut;
    if (is_duplicate(*head, report)) {
      put_also(*head, report);
      ++receipt.duplicates;
      continue;
    }
    ++receipt.accepted;
    if (report.kind != ReportKind::start && head->ended) ++receipt.late;
    if (report.kind == ReportKind::heartbeat) {
      if (!std::holds_alternative<Heartbeats>(report.detail)) report.detail = Heartbeats{};
      fold_beats(*head, report);
      continue;
    }
    put_beats(*head);
    const auto stamp = put(*head, report, head->ended && report.kind != ReportKind::start);
    touch_session(*head, stamp, report);
    if (heard) forget_cancel(*head);
  }
  put_beats(*head);
  receipt.key = head->key;
  receipt.last = head->seq;
  receipt.directive = head->directive;
  return receipt;
}

void Store::State::put_heads() {
  auto& upsert =
      sql("INSERT INTO heads (session, seq, events) VALUES (?, ?, ?) ON CONFLICT "
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

void Store::State::stamp() {
  now = std::max(last_tick, Instant{options.clock->since_boot() + offset});
  last_tick = now;
  if (server == nullptr || !has_server_time()) {
    wall = options.clock->wall();
  } else {
    wall = WallTime{options.clock->since_boot() + wall_offset};
  }
  if (server != nullptr) next_seq = server->first_seq_for(now, next_seq);
}

void Store::State::notify() {
  if (notifier) notifier->notify(addressed);
  addressed.clear();
}

Result<std::vector<Result<Receipt>>> Store::append(std::span<Batch> batches) {
  using Receipts = std::vector<Result<Receipt>>;
  state_->dirty.clear();
  state_->addressed.clear();
  auto receipts = state_->in_turn<Receipts>([&]() -> Result<Receipts> {
    state_->stamp();
    if (state_->server != nullptr) state_->fetch_ahead(batches);
    Receipts made;
    made.reserve(batches.size());
    for (auto& batch : batches) made.push_back(state_->append(batch));
    state_->put_heads();
    return made;
  });
  if (receipts) state_->notify();
  return receipts;
}

void Store::State::put_absence(Millis gap) {
  stamp();
  observer.seq = reader.state_->head_of(observer_key);
  Report report;
  report.kind = ReportKind::observer;
  report.detail = ObserverGap{gap};
  origin = ReportOrigin::monitor;
  (void)put(observer, report, false);
  put_heads();
}

Instant Store::now() const {
  return std::max(state_->last_tick, Instant{state_->options.clock->since_boot() + state_->offset});
}

StoreReader& Store::reader() {
  return state_->reader;
}

bool Store::vanished() const {
  return !state_ || !state_->files.in_place();
}

const std::filesystem::path& Store::path() const noexcept {
  return state_->options.database;
}

}  // namespace watchdog
