// A writer's turn is a transaction that holds the lock of the one row of `turn`. Statements of a
// turn go through a pipeline. `end_turn` raises the turn's number and signs it, so that a writer
// that loses the connection during its COMMIT can see in its next turn whether that happened. Ticks
// and leases follow a time line that never goes back: where the server's clock did, the line goes
// on from the newest turn. A new day has a part of its own: a table that is made and then attached,
// which stops nobody. A monitor may run when a newer one brings the tables to another major
// version: from then on it writes nothing, so each turn looks at the version.
#include "postgres/server.h"

#include <random>
#include <string>
#include <thread>

#include "facts/ids.h"
#include "postgres/postgres.h"
#include "store_postgresql_sql.h"

namespace watchdog::monitor {
namespace {

constexpr std::int64_t tables_major = 1;
constexpr int seqs_of_a_part = 36;  // bits
constexpr std::int64_t day_ms = 24LL * 3'600'000;
constexpr std::chrono::seconds bytes_kept{30};
/// With serializable transactions, a writer that waited for another one has to begin again.
constexpr int lock_tries_max = 100;
constexpr int busy_ms_writing = 5'000;
constexpr int busy_ms_reading = 60'000;
/// Of a turn that has begun: what a monitor with newer tables committed before is seen.
constexpr const char* wall_and_version_sql =
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT), (SELECT value FROM meta "
    "WHERE key = 'schema')";
constexpr const char* clock_sql =
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + coalesce(offset_ms, 0) "
    "FROM turn WHERE one = 1";

/// The parts of the schema, one for each minor version.
std::vector<std::string> steps_of_schema() {
  std::vector<std::string> steps;
  std::string_view text = store_postgresql_sql;
  constexpr std::string_view line = "\n-- ---- ";
  for (std::size_t end = 0; end != text.npos;) {
    end = text.find(line, 1);
    steps.emplace_back(text.substr(0, end));
    if (end != text.npos) text.remove_prefix(end + 1);
  }
  return steps;
}

std::int64_t number_in(const ResultPtr& result, int column) {
  const char* value = PQgetvalue(result.get(), 0, column);
  if (PQfformat(result.get(), column) == 0) return std::strtoll(value, nullptr, 10);
  std::int64_t number = 0;
  for (int at = 0; at < PQgetlength(result.get(), 0, column); ++at)
    number = (number << 8) | static_cast<unsigned char>(value[at]);
  return number;
}

Result<std::unique_ptr<StoreServer>> open_postgresql(const std::string& url, bool write) {
  if (auto checked = PgConnection::check(url); !checked) return checked.error();
  try {
    auto server = std::make_unique<PgServer>(url, write);
    server->connect();
    return std::unique_ptr<StoreServer>(std::move(server));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

}  // namespace

void use_postgresql() noexcept {
  use_servers(open_postgresql);
}

PgServer::PgServer(std::string url, bool write)
    : connection_(std::move(url), write ? busy_ms_writing : busy_ms_reading),
      session_{.connection = connection_},
      writer_(new_ulid(system_clock().wall())),
      own_number_(
          std::make_unique<PgStatement>(session_, "SELECT number FROM writers WHERE writer = ?")),
      end_(std::make_unique<PgStatement>(
          session_,
          "UPDATE turn SET number = number + 1, next_seq = ?, last_tick_ms = ?, clock_ms = ?, "
          "offset_ms = ? WHERE one = 1")),
      sign_(std::make_unique<PgStatement>(
          session_,
          "INSERT INTO writers (writer, number, at_ms) SELECT ?, number, last_tick_ms FROM turn ON "
          "CONFLICT (writer) DO UPDATE SET number = excluded.number, at_ms = excluded.at_ms")) {}

PgServer::~PgServer() = default;

std::int64_t PgServer::number(const std::string& sql) {
  const auto result = connection_.run(sql);
  return PQntuples(result.get()) == 0 ? 0 : number_in(result, 0);
}

/// 0: there are no tables.
std::int64_t PgServer::version() {
  if (number("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'watchdog' AND "
             "table_name = 'meta'") == 0)
    return 0;
  return number("SELECT value FROM meta WHERE key = 'schema'");
}

void PgServer::refuse_version(std::int64_t version, ErrorCode code) const {
  if (version / 1000 == tables_major) return;
  throw SqlFailure{
      Error{code, "database " + connection_.url() + ": its schema is version " +
                      std::to_string(version / 1000) + "." + std::to_string(version % 1000) +
                      "; this program works with version " + std::to_string(tables_major) +
                      ". Use a newer program or another database"}};
}

void PgServer::check_tables() {
  refuse_foreign_schema();
  const auto found = version();
  if (found == 0) {
    throw SqlFailure{Error{ErrorCode::not_found,
                           "database " + connection_.url() +
                               ": it holds nothing yet. A monitor makes the tables at its first "
                               "start: watchdog-monitor serve --db URL"}};
  }
  refuse_version(found);
  const auto newest = tables_major * 1000 + static_cast<std::int64_t>(steps_of_schema().size()) - 1;
  if (found < newest) {
    throw SqlFailure{Error{ErrorCode::conflict,
                           "database " + connection_.url() +
                               ": its tables are of an older version. Start a monitor of this "
                               "version, which brings them up to date"}};
  }
}

/// Functions and tables of another role's schema would run with the rights of this one.
void PgServer::refuse_foreign_schema() {
  connection_.run("SET search_path TO pg_catalog");
  const auto foreign = number(
      "SELECT count(*) FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.oid = "
      "n.nspowner WHERE n.nspname = 'watchdog' AND r.rolname <> current_user AND NOT r.rolsuper");
  connection_.run("SET search_path TO watchdog, pg_temp");
  if (foreign == 0) return;
  throw SqlFailure{
      Error{ErrorCode::invalid,
            "database " + connection_.url() +
                ": its schema watchdog belongs to another role, which could run "
                "functions as this one. If you trust what is in it, run as a superuser: "
                "ALTER SCHEMA watchdog OWNER TO the monitor's role"}};
}

void PgServer::bring_up_to_date() {
  refuse_foreign_schema();
  const auto steps = steps_of_schema();
  const auto newest = tables_major * 1000 + static_cast<std::int64_t>(steps.size()) - 1;
  auto found = version();
  if (found != 0) refuse_version(found);
  if (found >= newest) return;
  connection_.run("BEGIN");
  try {
    // Monitors of the older version are between two turns while the tables change.
    if (found != 0) connection_.run("LOCK TABLE turn IN ACCESS EXCLUSIVE MODE");
    if (found == 0) {
      connection_.run("CREATE SCHEMA IF NOT EXISTS watchdog");
      refuse_foreign_schema();
      found = version();  // others may have been quicker
    } else {
      found = number("SELECT value FROM meta WHERE key = 'schema' FOR UPDATE");
    }
    const auto next = found == 0 ? 0 : found % 1000 + 1;
    for (auto minor = static_cast<std::size_t>(next); minor < steps.size(); ++minor)
      connection_.run(steps[minor]);
    if (found < newest) {
      connection_.run("INSERT INTO meta (key, value) VALUES ('schema', " + std::to_string(newest) +
                      ") ON CONFLICT (key) DO UPDATE SET value = excluded.value");
    }
    connection_.run("COMMIT");
  } catch (const SqlFailure&) {
    if (!connection_.is_lost()) connection_.run("ROLLBACK");
    throw;
  }
}

void PgServer::prepare_tables() {
  for (int tries = 0;; ++tries) {
    try {
      connection_.connect();
      return bring_up_to_date();
    } catch (const SqlFailure& failure) {
      if (!failure.is_passing || tries == server_tries_max) throw;
    }
    // The server starts: nothing reports when it is ready.
    std::this_thread::sleep_for(server_pause * (1 << tries));
  }
}

std::unique_ptr<ServerStatement> PgServer::prepare(std::string_view sql) {
  if (auto bulk = PgBulk::of(session_, sql)) return bulk;
  return std::make_unique<PgStatement>(session_, sql);
}

void PgServer::begin_view() {
  if (session_.in_turn || session_.views > 0) {
    ++session_.views;
    return;
  }
  constexpr const char* begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  connection_.connect();
  try {
    connection_.run(begin);
  } catch (const SqlFailure&) {
    if (!connection_.is_lost()) throw;
    connection_.connect();  // the server was restarted since the last question
    connection_.run(begin);
  }
  session_.views = 1;
}

void PgServer::end_view() noexcept {
  if (session_.views == 0 || --session_.views > 0 || session_.in_turn) return;
  try {
    if (!connection_.is_lost()) connection_.run("COMMIT");
  } catch (const SqlFailure&) {  // the view is over either way
  }
}

ServerTurn PgServer::lock_turn() {
  if (connection_.connect()) came_back_ = true;
  session_.views = 0;
  session_.wrote = false;
  session_.drop_rows();
  connection_.begin_pipeline();
  session_.in_turn = true;
  try {
    ServerTurn turn;
    connection_.send("BEGIN");
    connection_.send(
        "SELECT number, next_seq, last_tick_ms, coalesce(clock_ms, 0), coalesce(offset_ms, 0) FROM "
        "turn WHERE one = 1 FOR UPDATE");
    const auto row = connection_.receive();
    turn.number = number_in(row, 0);
    turn.next_seq = number_in(row, 1);
    turn.last_tick = Instant{Millis{number_in(row, 2)}};
    line_ = {.latest = std::max(Millis{number_in(row, 3)}, turn.last_tick.time_since_epoch()),
             .ahead = Millis{number_in(row, 4)}};
    if (came_back_) {  // otherwise the answer to each COMMIT came
      own_number_->reset();
      own_number_->bind(1, std::string_view(writer_));
      if (own_number_->step()) turn.own_number = own_number_->integer(0);
      own_number_->reset();
    }
    connection_.send(wall_and_version_sql);
    const auto present = connection_.receive();
    turn.wall = Millis{number_in(present, 0)};
    refuse_version(number_in(present, 1), ErrorCode::unavailable);
    const auto before = line_.latest;
    turn.clock = line_.advance(turn.wall);
    if (before != Millis{0}) turn.passed = turn.clock - before;
    turn.server_came_back = std::exchange(came_back_, false);
    return turn;
  } catch (const SqlFailure&) {
    drop_turn();
    throw;
  }
}

ServerTurn PgServer::begin_turn() {
  thread_local std::minstd_rand random{std::random_device{}()};
  for (int tries = 0;; ++tries) {
    try {
      return lock_turn();
    } catch (const SqlFailure& failure) {
      if (connection_.is_lost() || !failure.is_passing || tries == lock_tries_max) throw;
    }
    // Writers that were refused together must not come back together.
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 10));
  }
}

bool PgServer::end_turn(const ServerTurnEnd& end) {
  const bool wrote = session_.wrote;
  try {
    if (wrote) {
      session_.send_rows();
      end_->bind(1, end.next_seq);
      end_->bind(2, end.last_tick.time_since_epoch().count());
      end_->bind(3, line_.latest.count());
      end_->bind(4, line_.ahead.count());
      end_->run();
      sign_->bind(1, std::string_view(writer_));
      sign_->run();
      if (!end.durable) connection_.send("SET LOCAL synchronous_commit TO off");
    }
    connection_.send("COMMIT");
    const auto committed = connection_.receive();
    if (std::string_view(PQcmdStatus(committed.get())) != "COMMIT") {
      throw SqlFailure{Error{ErrorCode::unavailable,
                             "database " + connection_.url() + ": it rolled the transaction back"},
                       true};
    }
  } catch (const SqlFailure&) {
    came_back_ = came_back_ || connection_.is_lost();
    drop_turn();
    throw;
  }
  session_.in_turn = false;
  connection_.end_pipeline();
  return wrote;
}

void PgServer::drop_turn() noexcept {
  session_.in_turn = false;
  session_.views = 0;
  session_.drop_rows();
  parts_.clear();
  connection_.end_pipeline();
  try {
    if (connection_.is_lost()) return;
    connection_.run("ROLLBACK");
    connection_.forget_stale();
  } catch (const SqlFailure&) {  // the server rolls back by itself
  }
}

Millis PgServer::clock() {
  PgStatement query(session_, clock_sql);
  return Millis{query.step() ? query.integer(0) : 0};
}

std::int64_t PgServer::bytes() {
  const auto now = std::chrono::steady_clock::now();
  if (now < bytes_until_) return bytes_;
  PgStatement query(session_,
                    "SELECT CAST(coalesce(sum(pg_total_relation_size(c.oid)), 0) AS BIGINT) FROM "
                    "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = "
                    "'watchdog' AND c.relkind = 'r'");
  if (query.step()) bytes_ = query.integer(0);
  bytes_until_ = now + bytes_kept;
  return bytes_;
}

void PgServer::make_part(std::int64_t part) {
  if (parts_.contains(part)) return;
  const auto name = "events_" + std::to_string(part);
  PgStatement find(session_, "SELECT 1 FROM parts WHERE part = ?");
  find.bind(1, part);
  if (!find.step()) {
    const auto bound = [](std::int64_t of) { return std::to_string(of << seqs_of_a_part); };
    connection_.send("CREATE TABLE " + name + " (LIKE events INCLUDING ALL)");
    connection_.send("ALTER TABLE events ATTACH PARTITION " + name + " FOR VALUES FROM (" +
                     bound(part) + ") TO (" + bound(part + 1) + ")");
    PgStatement note(session_, "INSERT INTO parts (part) VALUES (?)");
    note.bind(1, part);
    note.run();
    connection_.receive();
  }
  parts_.insert(part);
}

Seq PgServer::first_seq_for(Instant tick, Seq next) {
  const auto day = std::max<std::int64_t>(tick.time_since_epoch().count(), 0) / day_ms;
  const auto part = std::max(day, next >> seqs_of_a_part);
  make_part(part);
  return std::max(next, std::max<Seq>(part << seqs_of_a_part, 1));
}

void PgServer::make_part_of(Seq seq) {
  make_part(seq >> seqs_of_a_part);
}

std::optional<Seq> PgServer::end_of_oldest_part(Seq next) {
  PgStatement oldest(session_, "SELECT min(part) FROM parts");
  if (!oldest.step() || oldest.is_null(0)) return std::nullopt;
  const auto part = oldest.integer(0);
  if (part >= next >> seqs_of_a_part) return std::nullopt;
  return (part + 1) << seqs_of_a_part;
}

void PgServer::drop_parts_before(Seq end) {
  const auto part = end >> seqs_of_a_part;
  PgStatement old(session_, "SELECT part FROM parts WHERE part < ?");
  old.bind(1, part);
  std::vector<std::int64_t> parts;
  while (old.step()) parts.push_back(old.integer(0));
  for (const auto dropped : parts) {
    connection_.send("DROP TABLE events_" + std::to_string(dropped));
    parts_.erase(dropped);
  }
  PgStatement forget(session_, "DELETE FROM parts WHERE part < ?");
  forget.bind(1, part);
  forget.run();
  // A writer that is in doubt about its last commit asks within minutes.
  connection_.send(
      "DELETE FROM writers WHERE at_ms < (SELECT last_tick_ms FROM turn) - 7 * 86400000::bigint");
}

void PgServer::raise_key(std::string_view table, std::int64_t last) {
  const std::string name(table);
  connection_.send("SELECT setval(pg_get_serial_sequence('" + name + "', 'id'), greatest(" +
                   std::to_string(last) + ", (SELECT coalesce(max(id), 0) FROM " + name +
                   ")) + 1, false)");
}

}  // namespace watchdog::monitor
