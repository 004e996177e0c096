// A thin layer over SQLite: statements, transactions, open modes, and the schema. An error is
// thrown as `SqlFailure` and becomes an `Error` at the store's functions. `added_columns` and
// the tables of 1.3 bring older files up to date; readers see what is missing through temporary
// views and tables instead.
#include "store/sqlite.h"

#include <sqlite3.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "schema_sql.h"
#include "store/lock.h"
#include "store/memory_count.h"
#include "store/version.h"

namespace watchdog {
namespace {

constexpr std::string_view private_database = ":memory:";

[[noreturn]] void fail(sqlite3* connection, int code, const std::string& path) {
  const std::string what =
      connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
  const auto failure = [&](ErrorCode kind, const std::string& why) {
    return SqlFailure{Error{kind, "database " + path + ": " + why}};
  };
  switch (code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      throw failure(ErrorCode::corrupt, what + "; restore it from a copy or choose another file");
    case SQLITE_FULL:
      throw failure(ErrorCode::unavailable, "no space left (" + what + ")");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw failure(ErrorCode::unavailable, "another program holds it locked (" + what + ")");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      throw failure(ErrorCode::unavailable, "it cannot be written (" + what + ")");
    default:
      throw failure(ErrorCode::unavailable, what);
  }
}

/// For a file that does not change while it is open.
std::string unchanging_uri(const std::string& path) {
  std::string uri = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '%') {
      uri += "%25";
    } else if (c == '?') {
      uri += "%3f";
    } else if (c == '#') {
      uri += "%23";
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

Statement::Statement(sqlite3* connection, std::string_view sql) {
  const int code = sqlite3_prepare_v3(connection, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) fail(connection, code, sqlite3_db_filename(connection, "main"));
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}
Statement::Statement(Statement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), server_(std::move(other.server_)) {}

void Statement::abandon() noexcept {
  statement_ = nullptr;
  (void)server_.release();
}

Statement& Statement::reset() {
  if (server_) {
    server_->reset();
    return *this;
  }
  sqlite3_reset(statement_);
  return *this;
}

Statement& Statement::bind(int at, std::int64_t number) {
  if (server_) {
    server_->bind(at, number);
    return *this;
  }
  sqlite3_bind_int64(statement_, at, number);
  return *this;
}

Statement& Statement::bind(int at, std::string_view text, bool null_if_empty) {
  if (text.empty() && null_if_empty) return bind_null(at);
  if (server_) {
    server_->bind(at, text);
    return *this;
  }
  // A null pointer would bind NULL: an empty text needs an address.
  sqlite3_bind_text(statement_, at, text.empty() ? "" : text.data(), static_cast<int>(text.size()),
                    SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_bytes(int at, std::string_view bytes) {
  if (bytes.empty()) return bind_null(at);
  if (server_) {
    server_->bind_bytes(at, bytes);
    return *this;
  }
  sqlite3_bind_blob64(statement_, at, bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_texts(int at, std::span<const std::string_view> texts) {
  server_->bind_texts(at, texts);
  return *this;
}

Statement& Statement::bind_numbers(int at, std::span<const std::int64_t> numbers) {
  server_->bind_numbers(at, numbers);
  return *this;
}

Statement& Statement::bind_null(int at) {
  if (server_) {
    server_->bind_null(at);
    return *this;
  }
  sqlite3_bind_null(statement_, at);
  return *this;
}

bool Statement::step() {
  if (server_) return server_->step();
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  sqlite3* connection = sqlite3_db_handle(statement_);
  const int extended = sqlite3_extended_errcode(connection);
  try {
    fail(connection, extended, sqlite3_db_filename(connection, "main"));
  } catch (...) {
    sqlite3_reset(statement_);
    throw;
  }
}

void Statement::run() {
  if (server_) return server_->run();
  while (step()) {
  }
  reset();
}

std::int64_t Statement::integer(int column) const {
  if (server_) return server_->integer(column);
  return sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
  if (server_) return std::string(server_->bytes(column));
  const auto* bytes = sqlite3_column_text(statement_, column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes),  // NOLINT: SQLite's own type for UTF-8
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view Statement::bytes(int column) const {
  if (server_) return server_->bytes(column);
  const auto* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

bool Statement::is_null(int column) const {
  if (server_) return server_->is_null(column);
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Database::Database(const std::string& path, OpenMode mode) : path_(path), mode_(mode) {
  if (inherited_connections()) {
    throw SqlFailure{Error{ErrorCode::unavailable,
                           "database " + path +
                               ": this process was forked from one that uses "
                               "SQLite, which does not survive a fork; execute a program first, or "
                               "report over HTTP"}};
  }
  const bool unchanging = mode == OpenMode::unchanging;
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE |
                    (mode == OpenMode::read_write_create
                         ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                         : SQLITE_OPEN_READONLY | (unchanging ? SQLITE_OPEN_URI : 0));
  // A database without a name is private, too. Beyond its cache SQLite keeps it in a temporary file
  // without a name in any folder, so a long recording needs little memory.
  const auto name = unchanging ? unchanging_uri(path) : path == private_database ? "" : path;
  const int code = sqlite3_open_v2(name.c_str(), &connection_, flags, nullptr);
  if (code != SQLITE_OK) {
    sqlite3* connection = std::exchange(connection_, nullptr);
    try {
      fail(connection, code, path);
    } catch (...) {
      sqlite3_close_v2(connection);
      throw;
    }
  }
  // SQLite opens what cannot be opened for writing for reading instead, and would never try again.
  if (mode == OpenMode::read_write_create && sqlite3_db_readonly(connection_, "main") == 1) {
    sqlite3_close_v2(std::exchange(connection_, nullptr));
    throw SqlFailure{Error{ErrorCode::unavailable,
                           "database " + path + ": it cannot be opened for writing now"}};
  }
  count_connection(+1);
  sqlite3_extended_result_codes(connection_, 1);
  // The file may come from anybody: nothing in its schema may run code or reach out.
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_busy_timeout(connection_, 2'000);
}

Database::~Database() {
  if (connection_ == nullptr) return;
  sqlite3_close_v2(connection_);
  count_connection(-1);
}

void Database::exec(const char* sql) {
  const int code = sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(connection_, sqlite3_extended_errcode(connection_), path_);
}

std::int64_t Database::pragma(const char* name) {
  auto statement = prepare(std::string("PRAGMA ") + name);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::real_path() const {
  return sqlite3_db_filename(connection_, "main");
}

std::string Database::journal_mode() {
  auto statement = prepare("PRAGMA journal_mode");
  return statement.step() ? statement.text(0) : "";
}

void Database::leave_log() noexcept {
  sqlite3_db_config(connection_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Transaction::Transaction(Database& database, Kind kind) : database_(database), kind_(kind) {
  if (auto* server = database_.server()) {
    server->begin_view();
    return;
  }
  database_.exec(kind == Kind::read ? "SAVEPOINT view" : "BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  if (auto* server = database_.server()) {
    server->end_view();
    return;
  }
  try {
    database_.exec(kind_ == Kind::read ? "RELEASE view" : "ROLLBACK");
  } catch (const SqlFailure&) {  // SQLite rolled back by itself
  }
}

void Transaction::commit() {
  database_.exec("COMMIT");
  open_ = false;
}

namespace {

/// A column that a minor version added. A newer program brings an older file up to date when it
/// writes, and only then.
struct AddedColumn {
  int minor;
  const char* table;
  const char* name;
  const char* type;
};
constexpr AddedColumn added_columns[] = {
    {1, "events", "marks", "BLOB"},      {1, "transitions", "situation", "TEXT"},
    {2, "sessions", "turns", "INTEGER"}, {2, "sessions", "aborts", "TEXT"},
    {4, "events", "origin", "INTEGER"},
};
/// The minor version that added tables, see tables_of_1_3().
constexpr int minor_of_tables = 3;

/// New tables are at the end of the schema.
const char* tables_of_1_3() {
  return std::strstr(schema_sql, "-- Since 1.3, all that follows");
}

std::string version_pragma() {
  return "PRAGMA user_version = " + std::to_string(schema_major * 1000 + schema_minor);
}

void bring_up_to_date(Database& database) {
  Transaction transaction(database);
  const auto minor = database.pragma("user_version") % 1000;  // nobody else was quicker
  for (const auto& [since, table, name, type] : added_columns) {
    if (since <= minor) continue;
    const auto add = std::string("ALTER TABLE ") + table + " ADD COLUMN " + name + " " + type;
    database.exec(add.c_str());
  }
  if (minor < minor_of_tables) database.exec(tables_of_1_3());
  if (minor < schema_minor) database.exec(version_pragma().c_str());
  transaction.commit();
}

/// Lets this connection read an older file as if it were up to date.
void show_up_to_date(Database& database, std::int64_t minor) {
  database.exec("PRAGMA temp_store = MEMORY");
  std::map<std::string, std::string> missing;  // by table
  for (const auto& column : added_columns)
    if (column.minor > minor) missing[column.table] += std::string(", NULL AS ") + column.name;
  for (const auto& [table, columns] : missing) {
    const auto view =
        "CREATE TEMP VIEW " + table + " AS SELECT *" + columns + " FROM main." + table;
    database.exec(view.c_str());
  }
  if (minor >= minor_of_tables) return;
  std::string tables = tables_of_1_3();
  constexpr std::string_view made = "CREATE TABLE";
  constexpr std::string_view kept_in_memory = "CREATE TEMP TABLE";
  for (auto at = tables.find(made); at != std::string::npos;
       at = tables.find(made, at + kept_in_memory.size()))
    tables.replace(at, made.size(), kept_in_memory);
  database.exec(tables.c_str());
}

}  // namespace

std::string schema_version() {
  return std::to_string(schema_major) + "." + std::to_string(schema_minor);
}

void stop_counting_memory() noexcept {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

std::string sqlite_version() {
  return sqlite3_libversion();
}

void prepare_schema(Database& database, OpenMode mode) {
  const auto refuse = [&](ErrorCode code, const std::string& why) {
    throw SqlFailure{Error{code, "database " + database.path() + ": " + why}};
  };
  database.exec("PRAGMA cell_size_check = ON; PRAGMA foreign_keys = OFF");
  const auto tables = [&] {
    auto statement = database.prepare("SELECT count(*) FROM sqlite_schema");
    return statement.step() ? statement.integer(0) : 0;
  };
  if (tables() == 0) {
    if (mode != OpenMode::read_write_create) refuse(ErrorCode::not_found, "it holds nothing yet");
    database.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL");
    Transaction transaction(database);
    if (tables() == 0) {  // no other process was faster
      database.exec(schema_sql);
      database.exec(("PRAGMA application_id = " + std::to_string(application_id)).c_str());
      database.exec(version_pragma().c_str());
    }
    transaction.commit();
  }
  if (database.pragma("application_id") != application_id) {
    refuse(ErrorCode::invalid, "it belongs to another program; choose another file");
  }
  const auto version = database.pragma("user_version");
  if (version / 1000 != schema_major) {
    refuse(ErrorCode::conflict,
           "its schema is version " + std::to_string(version / 1000) + "." +
               std::to_string(version % 1000) + "; this program works with version " +
               std::to_string(schema_major) + ". Use a newer program or another file");
  }
  if (version % 1000 < schema_minor) {
    if (mode == OpenMode::read_write_create) {
      bring_up_to_date(database);
    } else {
      show_up_to_date(database, version % 1000);
    }
  }
  if (mode == OpenMode::read_write_create) {
    // Deleted data is overwritten, so a file that is handed on holds nothing else.
    database.exec(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON");
  }
}

}  // namespace watchdog
