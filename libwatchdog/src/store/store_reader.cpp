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

std::vector<Boot> boots_of(StoreReader& store) {
  using Boots = std::vector<Boot>;
  auto found = store.state_->guarded<Boots>([&]() -> Result<Boots> {
    const bool is_shared = store.state_->database->server() != nullptr;
    // Machines may share an id: containers of one image have names of their own, and copies of one
    // disk are seen beside each other. A monitor renews its leases many times in a minute.
    auto& query = store.state_->prepared(
        is_shared ? "SELECT boot_id, host FROM boots AS old WHERE EXISTS (SELECT 1 FROM boots AS "
                    "later WHERE later.machine = old.machine AND later.host = old.host AND "
                    "later.offset_ms > old.seen_ms AND later.seen_ms > old.seen_ms + 60000) ORDER "
                    "BY seen_ms DESC LIMIT 1000"
                  : "SELECT boot_id, '' FROM boots ORDER BY offset_ms DESC LIMIT 1000");
    const ResetLater later(query);
    Boots boots;
    while (query.step()) boots.push_back({query.text(0), query.text(1)});
    return boots;
  });
  return found ? std::move(*found) : Boots();
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
