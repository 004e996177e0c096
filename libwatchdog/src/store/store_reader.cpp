// Queries on one connection. Lists use keyset paging. A session's events form a chain backwards by
// `prev`, so a page forwards walks back from the next event in `blocks`. A missing event is the end
// of the chain: older ones were trimmed. Rows that cannot be decoded are shown as far as possible.
#include "store/store_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "codec/facts.h"
#include "codec/fields.h"
#include "codec/json.h"
#include "store/event_row.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/reader_state.h"

namespace watchdog {
namespace {

constexpr std::string_view transition_columns =
    "SELECT t.id, t.session, t.seq, t.tick_ms, t.at_ms, t.from_health, t.health, t.pattern, "
    "t.reason, t.evidence, t.detector, t.policy_digest, t.tick_ms - e.tick_ms, t.situation "
    "FROM transitions t LEFT JOIN events e ON e.seq = t.seq ";

/// A walk over more events than this ends the page early, so that no query runs away.
constexpr int walk_max = 20'000;

/// Of the column transitions.evidence.
void read_evidence(const std::string& text, Health& health) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_array()) return;
  auto into = health.evidence.begin();
  for (const auto& seq : *parsed) {
    if (into == health.evidence.end() || !seq.is_number_integer()) return;
    *into++ = seq.get<Seq>();
  }
}

TransitionRow transition_from(const Statement& query) {
  TransitionRow row{.id = query.integer(0), .detector = query.text(10)};
  auto& transition = row.transition;
  transition.session = query.integer(1);
  transition.seq = query.integer(2);
  transition.tick = Instant{Millis{query.integer(3)}};
  transition.at = WallTime{Millis{query.integer(4)}};
  transition.from = named<HealthKind>(query.text(5)).value_or(HealthKind::unknown);
  transition.health.kind = named<HealthKind>(query.text(6)).value_or(HealthKind::unknown);
  transition.health.pattern = named<Pattern>(query.text(7)).value_or(Pattern::none);
  transition.reason = query.text(8);
  read_evidence(query.text(9), transition.health);
  transition.policy_digest = static_cast<std::uint64_t>(query.integer(11));
  transition.situation = query.text(13);
  if (!query.is_null(12)) row.quiet = Millis{query.integer(12)};
  return row;
}

CancelRequest request_from(const nlohmann::json& object) {
  Fields fields(object);
  CancelRequest request;
  std::optional<std::int64_t> at;
  fields.text("by", request.by, event_bytes_max);
  fields.text("reason", request.reason, event_bytes_max);
  fields.text("turnId", request.turn, event_bytes_max);
  fields.text("toolId", request.call, event_bytes_max);
  fields.integer("at", at);
  request.at = WallTime{Millis{at.value_or(0)}};
  return request;
}

}  // namespace

Directive directive_from(const std::string& cancel, const std::string& aborts) {
  Directive directive;
  if (!cancel.empty()) {
    if (const auto parsed = parse_object(cancel)) directive.cancel = request_from(*parsed);
  }
  if (aborts.empty()) return directive;
  const auto parsed = parse_json(aborts);
  if (!parsed || !parsed->is_array()) return directive;
  for (const auto& item : *parsed) {
    if (directive.aborts.size() == Directive::aborts_max) break;
    if (item.is_object()) directive.aborts.push_back(request_from(item));
  }
  return directive;
}

Statement& StoreReader::State::prepared(std::string_view sql) {
  if (const auto found = statements.find(std::string(sql)); found != statements.end()) {
    found->second.reset();
    return found->second;
  }
  return statements.emplace(std::string(sql), database->prepare(sql)).first->second;
}

StoreReader::State::~State() {
  if (fork_generation() == generation) return;
  // A forked child: its parent's connection must neither be closed nor checkpointed from here.
  for (auto& [sql, statement] : statements) statement.abandon();
  database->abandon();
}

StoreReader::StoreReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoreReader::~StoreReader() = default;
StoreReader::StoreReader(StoreReader&&) noexcept = default;
StoreReader& StoreReader::operator=(StoreReader&&) noexcept = default;

namespace {

/// Readers of a database share an index beside it (`-shm`). If there is none and none can be
/// created, no process writes: it is a copy on a read-only medium.
Result<OpenMode> mode_to_read(const std::filesystem::path& database) {
  const auto real = real_file(database);
  const auto log = real.string() + "-wal";
  std::error_code trouble;
  if (faccessat(AT_FDCWD, real.parent_path().c_str(), W_OK, AT_EACCESS) == 0 ||
      std::filesystem::exists(real.string() + "-shm", trouble))
    return OpenMode::read_only;
  const auto bytes = std::filesystem::file_size(log, trouble);
  if (trouble || bytes == 0) return OpenMode::unchanging;
  return Error{ErrorCode::unavailable,
               "database " + database.string() + ": its log " + log +
                   " holds events that can only be read where a file can be made beside it; copy "
                   "both files to a directory that can be written"};
}

}  // namespace

Result<StoreReader> StoreReader::open_on_server(const std::filesystem::path& url) {
  auto server = open_server(url, false);
  if (!server) return server.error();
  try {
    (*server)->check_tables();
    return StoreReader(std::make_unique<State>(
        std::make_shared<Database>(url.string(), std::move(*server), OpenMode::read_only)));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

Result<StoreReader> StoreReader::open(const std::filesystem::path& database) {
  if (is_server_url(database)) return open_on_server(database);
  if (auto checked = check_file(database); !checked) return checked.error();
  const auto mode = mode_to_read(database);
  if (!mode) return mode.error();
  try {
    auto connection = std::make_shared<Database>(database.string(), *mode);
    prepare_schema(*connection, *mode);
    return StoreReader(std::make_unique<State>(std::move(connection)));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

Result<Directive> StoreReader::directive_of(std::string_view id) {
  return state_->guarded<Directive>([&]() -> Result<Directive> {
    auto& query = state_->prepared("SELECT cancel, aborts FROM sessions WHERE name = ?");
    const ResetLater later(query);
    query.bind(1, id);
    return query.step() ? directive_from(query.text(0), query.text(1)) : Directive{};
  });
}

Result<std::vector<SessionKey>> StoreReader::sessions_to_judge() {
  return state_->guarded<std::vector<SessionKey>>([&]() -> Result<std::vector<SessionKey>> {
    auto& query = state_->prepared(
        "SELECT s.id FROM sessions s LEFT JOIN heads h ON h.session = s.id LEFT JOIN snapshots p "
        "ON "
        "p.session = s.id WHERE s.ended_ms IS NULL OR coalesce(p.seq, 0) < coalesce(h.seq, 0)");
    const ResetLater later(query);
    std::vector<SessionKey> keys;
    while (query.step()) keys.push_back(query.integer(0));
    return keys;
  });
}

Result<std::vector<Event>> StoreReader::events_after(Seq seq, int count_max,
                                                     std::size_t bytes_max) {
  return state_->guarded<std::vector<Event>>([&]() -> Result<std::vector<Event>> {
    auto& query = state_->prepared("SELECT " + std::string(event_columns) +
                                   " FROM events WHERE seq > ? ORDER BY seq LIMIT ?");
    const ResetLater later(query);
    query.bind(1, seq).bind(2, count_max);
    std::vector<Event> events;
    for (std::size_t bytes = 0; bytes < bytes_max && query.step();) {
      bytes += event_bytes(query);
      events.push_back(event_from(query));
    }
    return events;
  });
}

std::string Backwards::question(bool on_server, std::string_view columns) {
  const std::string own(columns);
  if (!on_server) return "SELECT " + own + " FROM events WHERE seq = ?";
  std::string joined = "e.";
  for (const char c : columns) {
    joined += c;
    if (c == ' ') joined += "e.";
  }
  return "WITH RECURSIVE chain AS (SELECT 1 AS step, " + own +
         " FROM events WHERE seq = ? UNION ALL SELECT c.step + 1, " + joined +
         " FROM chain c JOIN events e ON e.seq = c.prev WHERE c.prev > ? AND c.step < " +
         std::to_string(piece) + ") SELECT " + own + " FROM chain ORDER BY step";
}

Backwards::Backwards(StoreReader::State& state, std::string_view columns, int prev_column, Seq from,
                     Seq after)
    : on_server_(state.database->server() != nullptr),
      row_(state.prepared(question(on_server_, columns))),
      prev_column_(prev_column),
      next_(from),
      after_(after) {}

bool Backwards::step() {
  if (next_ <= after_) return false;
  if (left_ == 0) {
    row_.reset().bind(1, next_);
    if (on_server_) row_.bind(2, after_);
    left_ = on_server_ ? piece : 1;
  }
  if (!row_.step()) return false;
  --left_;
  seq_ = next_;
  next_ = row_.integer(prev_column_);
  return true;
}

std::vector<Event> StoreReader::State::walk(Seq from, Seq after, std::vector<std::size_t>* bytes) {
  std::vector<Event> events;
  for (Backwards at(*this, event_columns, prev_in_event, from, after); at.step();) {
    events.push_back(event_from(at.row()));
    if (bytes != nullptr) bytes->push_back(event_bytes(at.row()));
  }
  std::reverse(events.begin(), events.end());
  if (bytes != nullptr) std::reverse(bytes->begin(), bytes->end());
  return events;
}

/// The same events without reading them.
std::vector<Seq> StoreReader::State::chain(Seq from, Seq after) {
  std::vector<Seq> seqs;
  for (Backwards at(*this, "prev", 0, from, after); at.step();) seqs.push_back(at.seq());
  std::reverse(seqs.begin(), seqs.end());
  return seqs;
}

Seq StoreReader::State::head_of(SessionKey session) {
  auto& query = prepared("SELECT seq FROM heads WHERE session = ?");
  const ResetLater later(query);
  query.bind(1, session);
  return query.step() ? query.integer(0) : 0;
}

/// Nothing in the file is later: ticks continue above it.
Instant StoreReader::State::latest_tick() {
  auto& query = prepared(
      database->server() != nullptr
          ? std::string_view("SELECT last_tick_ms FROM turn")
          : std::string_view(
                "SELECT max(coalesce((SELECT tick_ms FROM events ORDER BY seq DESC LIMIT 1), 0), "
                "coalesce((SELECT tick_ms FROM transitions ORDER BY id DESC LIMIT 1), 0), "
                "coalesce((SELECT value FROM meta WHERE key = 'last_tick_ms'), 0))"));
  const ResetLater later(query);
  query.step();
  return Instant{Millis{query.integer(0)}};
}

Result<EventPage> StoreReader::page(SessionKey session, Seq after, int count_max,
                                    std::optional<ReportKind> kind, std::size_t bytes_max) {
  return state_->guarded<EventPage>([&]() -> Result<EventPage> {
    const Transaction one_view(*state_->database, Transaction::Kind::read);
    const Seq head = state_->head_of(session);
    EventPage page;
    std::size_t bytes = 0;
    Seq reached = after;
    for (int walked = 0; reached < head;) {
      auto& blocks = state_->prepared(
          "SELECT seq FROM blocks WHERE session = ? AND seq > ? ORDER BY seq LIMIT 1");
      blocks.bind(1, session).bind(2, reached);
      const Seq block_end = blocks.step() ? blocks.integer(0) : head;
      blocks.reset();
      // False: the page is full.
      const auto take = [&](Event event, std::size_t size) {
        reached = event.seq;
        if (kind && event.report.kind != *kind) return true;
        bytes += size;
        page.events.push_back(std::move(event));
        return static_cast<int>(page.events.size()) < count_max && bytes < bytes_max;
      };
      bool has_room = true;
      if (state_->database->server() != nullptr) {
        std::vector<std::size_t> sizes;
        auto events = state_->walk(block_end, reached, &sizes);
        walked += static_cast<int>(events.size()) + 1;
        for (std::size_t at = 0; at < events.size() && has_room; ++at)
          has_room = take(std::move(events[at]), sizes[at]);
      } else {
        // A block may hold more than a page: it is read from where the page goes on.
        const auto seqs = state_->chain(block_end, reached);
        walked += static_cast<int>(seqs.size()) + 1;
        auto& query =
            state_->prepared("SELECT " + std::string(event_columns) + " FROM events WHERE seq = ?");
        const ResetLater later(query);
        for (std::size_t at = 0; at < seqs.size() && has_room; ++at) {
          query.reset().bind(1, seqs[at]);
          if (!query.step()) break;
          has_room = take(event_from(query), event_bytes(query));
        }
      }
      if (!has_room) {
        if (reached < head) page.next = reached;
        return page;
      }
      reached = std::max(reached, block_end);
      if (walked >= walk_max && reached < head) {
        page.next = reached;
        return page;
      }
    }
    return page;
  });
}

Result<EventPage> StoreReader::page_before(SessionKey session, Seq before, int count_max,
                                           std::optional<ReportKind> kind, std::size_t bytes_max) {
  return state_->guarded<EventPage>([&]() -> Result<EventPage> {
    const Transaction one_view(*state_->database, Transaction::Kind::read);
    auto& block = state_->prepared(
        "SELECT seq FROM blocks WHERE session = ? AND seq >= ? ORDER BY seq LIMIT 1");
    block.bind(1, session).bind(2, before);
    const Seq from = block.step() ? block.integer(0) : state_->head_of(session);
    block.reset();
    EventPage page;
    std::size_t bytes = 0;
    Backwards at(*state_, event_columns, prev_in_event, from);
    for (int walked = 0; at.prev() > 0; ++walked) {
      if (static_cast<int>(page.events.size()) == count_max || walked >= walk_max ||
          bytes >= bytes_max) {
        page.next = std::min(before, at.prev() + 1);
        break;
      }
      if (!at.step()) break;
      auto event = event_from(at.row());
      if (at.seq() >= before || (kind && event.report.kind != *kind)) continue;
      bytes += event_bytes(at.row());
      page.events.push_back(std::move(event));
    }
    return page;
  });
}

Result<std::vector<Seq>> StoreReader::events_up_to(Seq seq, int count_max) {
  return state_->guarded<std::vector<Seq>>([&]() -> Result<std::vector<Seq>> {
    std::vector<Seq> found;
    Backwards at(*state_, "prev", 0, seq);
    while (static_cast<int>(found.size()) < count_max && at.step()) found.push_back(at.seq());
    std::reverse(found.begin(), found.end());
    return found;
  });
}

Result<std::vector<std::string>> StoreReader::sessions_without_events(WallTime made_until,
                                                                      std::size_t count_max) {
  using Names = std::vector<std::string>;
  return state_->guarded<Names>([&]() -> Result<Names> {
    auto& query = state_->prepared(
        "SELECT name FROM sessions WHERE ended_ms IS NULL AND created_ms <= ? AND NOT EXISTS "
        "(SELECT 1 FROM heads WHERE session = sessions.id) LIMIT ?");
    const ResetLater later(query);
    query.bind(1, made_until.time_since_epoch().count());
    query.bind(2, static_cast<std::int64_t>(count_max));
    Names names;
    while (query.step()) names.push_back(query.text(0));
    return names;
  });
}

Result<std::optional<Instant>> StoreReader::tick_of(Seq seq) {
  return state_->guarded<std::optional<Instant>>([&]() -> Result<std::optional<Instant>> {
    auto& query = state_->prepared("SELECT tick_ms FROM events WHERE seq = ?");
    const ResetLater later(query);
    query.bind(1, seq);
    return query.step() ? std::optional(Instant{Millis{query.integer(0)}}) : std::nullopt;
  });
}

Result<std::vector<Event>> StoreReader::latest(SessionKey session, int count_max) {
  return state_->guarded<std::vector<Event>>([&]() -> Result<std::vector<Event>> {
    const Transaction one_view(*state_->database, Transaction::Kind::read);
    std::vector<Event> events;
    Backwards at(*state_, event_columns, prev_in_event, state_->head_of(session));
    for (int walked = 0; walked < walk_max && at.step(); ++walked) {
      auto event = event_from(at.row());
      if (event.report.kind == ReportKind::heartbeat) continue;
      events.push_back(std::move(event));
      if (static_cast<int>(events.size()) == count_max) break;
    }
    std::reverse(events.begin(), events.end());
    return events;
  });
}

Result<std::optional<Event>> StoreReader::opinion(std::string_view event_id) {
  return state_->guarded<std::optional<Event>>([&]() -> Result<std::optional<Event>> {
    // Agents choose event ids as well; their own statements are not a model's answer.
    auto& query =
        state_->prepared("SELECT " + std::string(event_columns) +
                         " FROM events WHERE event_id = ? AND kind = ? AND name <> 'self' "
                         "ORDER BY seq DESC LIMIT 1");
    const ResetLater later(query);
    query.bind(1, event_id).bind(2, static_cast<std::int64_t>(ReportKind::opinion));
    if (!query.step()) return std::optional<Event>{};
    return std::optional(event_from(query));
  });
}

Result<std::vector<TransitionRow>> StoreReader::transitions(SessionKey session, std::int64_t after,
                                                            int count_max) {
  return state_->guarded<std::vector<TransitionRow>>([&]() -> Result<std::vector<TransitionRow>> {
    auto& query = state_->prepared(std::string(transition_columns) +
                                   "WHERE t.session = ? AND t.id > ? ORDER BY t.id LIMIT ?");
    const ResetLater later(query);
    query.bind(1, session).bind(2, after).bind(3, count_max);
    std::vector<TransitionRow> rows;
    while (query.step()) rows.push_back(transition_from(query));
    return rows;
  });
}

Result<std::vector<TransitionRow>> StoreReader::transitions_after(std::int64_t id, Seq through,
                                                                  int count_max) {
  return state_->guarded<std::vector<TransitionRow>>([&]() -> Result<std::vector<TransitionRow>> {
    auto& query =
        state_->prepared(std::string(transition_columns) + "WHERE t.id > ? ORDER BY t.id LIMIT ?");
    const ResetLater later(query);
    query.bind(1, id).bind(2, count_max);
    std::vector<TransitionRow> rows;
    while (query.step() && query.integer(2) <= through) rows.push_back(transition_from(query));
    return rows;
  });
}

Result<std::vector<HealthChange>> StoreReader::changes_since(WallTime since, int count_max) {
  return state_->guarded<std::vector<HealthChange>>([&]() -> Result<std::vector<HealthChange>> {
    auto& query = state_->prepared(
        "SELECT s.name, t.at_ms, t.from_health, t.health, t.pattern FROM transitions t "
        "JOIN sessions s ON s.id = t.session ORDER BY t.id DESC LIMIT ?");
    const ResetLater later(query);
    query.bind(1, count_max);
    std::vector<HealthChange> changes;
    while (query.step() && query.integer(1) >= since.time_since_epoch().count()) {
      changes.push_back({.session = query.text(0),
                         .at = WallTime{Millis{query.integer(1)}},
                         .from = named<HealthKind>(query.text(2)).value_or(HealthKind::unknown),
                         .health = named<HealthKind>(query.text(3)).value_or(HealthKind::unknown),
                         .pattern = named<Pattern>(query.text(4)).value_or(Pattern::none)});
    }
    return changes;
  });
}

Result<std::int64_t> StoreReader::newest_transition() {
  return state_->guarded<std::int64_t>([&]() -> Result<std::int64_t> {
    auto& query = state_->prepared(newest_transition_sql);
    const ResetLater later(query);
    return query.step() ? query.integer(0) : 0;
  });
}

Result<Seq> StoreReader::first_kept() {
  return state_->guarded<Seq>([&]() -> Result<Seq> {
    auto& query = state_->prepared("SELECT value FROM meta WHERE key = 'first_seq'");
    const ResetLater later(query);
    return query.step() ? query.integer(0) : 0;
  });
}

Result<std::pair<Seq, Instant>> StoreReader::newest() {
  using Newest = std::pair<Seq, Instant>;
  return state_->guarded<Newest>([&]() -> Result<Newest> {
    auto& query = state_->prepared("SELECT seq, tick_ms FROM events ORDER BY seq DESC LIMIT 1");
    const ResetLater later(query);
    if (!query.step()) return Newest{};
    return Newest{query.integer(0), Instant{Millis{query.integer(1)}}};
  });
}

Result<Instant> StoreReader::latest_tick() {
  return state_->guarded<Instant>([&]() -> Result<Instant> { return state_->latest_tick(); });
}

Result<std::optional<Millis>> StoreReader::tick_offset(const std::string& boot_id) {
  return state_->guarded<std::optional<Millis>>([&]() -> Result<std::optional<Millis>> {
    auto* server = state_->database->server();
    if (server != nullptr && boot_id == system_clock().boot_id())
      return std::optional(server->clock() - system_clock().since_boot());
    auto& query = state_->prepared("SELECT offset_ms FROM boots WHERE boot_id = ?");
    const ResetLater later(query);
    query.bind(1, boot_id);
    return query.step() ? std::optional(Millis{query.integer(0)}) : std::nullopt;
  });
}

Result<std::int64_t> StoreReader::version() {
  return state_->guarded<std::int64_t>([&]() -> Result<std::int64_t> {
    if (state_->database->server() == nullptr) return state_->database->pragma("data_version");
    auto& query = state_->prepared("SELECT number FROM turn");
    const ResetLater later(query);
    return query.step() ? query.integer(0) : 0;
  });
}

}  // namespace watchdog
