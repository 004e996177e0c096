/// \file
/// SQLite with its resources owned and its errors thrown. Failures leave this folder as Results
/// only. The same classes stand for a connection to a server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/server.h"
#include "watchdog/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace watchdog {

/// A prepared statement. Texts are bound without a copy: they must live until the next reset.
class Statement {
 public:
  Statement(sqlite3* connection, std::string_view sql);
  explicit Statement(std::unique_ptr<ServerStatement> on_server) : server_(std::move(on_server)) {}
  ~Statement();
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& reset();
  Statement& bind(int at, std::int64_t number);
  /// An empty text is bound as NULL if `null_if_empty`.
  Statement& bind(int at, std::string_view text, bool null_if_empty = false);
  Statement& bind_null(int at);
  /// Empty bytes are bound as NULL.
  Statement& bind_bytes(int at, std::string_view bytes);
  /// For `= ANY(?)` on a server.
  Statement& bind_texts(int at, std::span<const std::string_view> texts);
  Statement& bind_numbers(int at, std::span<const std::int64_t> numbers);
  template <class... Values>
  Statement& bind_all(const Values&... values) {
    reset();
    int at = 0;
    (bind(++at, values), ...);
    return *this;
  }

  /// True while there is a row. Throws SqlFailure.
  bool step();
  /// Runs it to its end and resets it.
  void run();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string text(int column) const;
  /// Valid until the next step.
  [[nodiscard]] std::string_view bytes(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  /// Forgets the statement without touching its connection (see Database::abandon).
  void abandon() noexcept;

 private:
  sqlite3_stmt* statement_ = nullptr;
  std::unique_ptr<ServerStatement> server_;  ///< Instead of `statement_`.
};

/// Resets a statement at the end of a scope, so that no read transaction stays open.
class ResetLater {
 public:
  explicit ResetLater(Statement& statement) : statement_(statement) {}
  ~ResetLater() { statement_.reset(); }
  ResetLater(const ResetLater&) = delete;
  ResetLater& operator=(const ResetLater&) = delete;

 private:
  Statement& statement_;
};

enum class OpenMode : std::uint8_t {
  read_only,
  unchanging,  ///< Read without locks, log and index: no process writes to it.
  read_write_create
};

/// A connection. Use from one thread at a time.
class Database {
 public:
  Database(const std::string& path, OpenMode mode);
  Database(const std::string& url, std::unique_ptr<StoreServer> server, OpenMode mode)
      : path_(url), mode_(mode), server_(std::move(server)) {}
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void exec(const char* sql);
  [[nodiscard]] Statement prepare(std::string_view sql) {
    return server_ ? Statement(server_->prepare(sql)) : Statement(connection_, sql);
  }
  /// Null: it is a file.
  [[nodiscard]] StoreServer* server() const noexcept { return server_.get(); }
  [[nodiscard]] std::int64_t pragma(const char* name);
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] OpenMode mode() const noexcept { return mode_; }
  /// The file that SQLite found behind the path: absolute, without symbolic links.
  [[nodiscard]] std::string real_path() const;
  [[nodiscard]] std::string journal_mode();
  /// Closing the connection neither empties nor removes the log. SQLite finds the log by its name,
  /// which may belong to another file by then.
  void leave_log() noexcept;
  /// Forgets the connection without closing it: what a forked child must do with its parent's.
  void abandon() noexcept {
    connection_ = nullptr;
    (void)server_.release();  // its socket is the parent's
  }

 private:
  std::string path_;
  OpenMode mode_;
  sqlite3* connection_ = nullptr;
  std::unique_ptr<StoreServer> server_;
};

/// All statements in its scope are one transaction; without commit() it is rolled back.
class Transaction {
 public:
  enum class Kind : std::uint8_t {
    write,  ///< Takes SQLite's write lock at once.
    read    ///< One unchanging view; may be nested in another transaction.
  };
  explicit Transaction(Database& database, Kind kind = Kind::write);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  Kind kind_;
  bool open_ = true;
};

/// The schema this program writes.
inline constexpr int schema_major = 1;
inline constexpr int schema_minor = 4;
inline constexpr std::int64_t application_id = 0x57444F47;  // "WDOG"

/// Creates the tables if the file is empty, brings those of an older minor version up to date, and
/// refuses what this program cannot work with. For a reader an older file stays as it is, and shows
/// what it lacks as empty.
void prepare_schema(Database& database, OpenMode mode);

}  // namespace watchdog
