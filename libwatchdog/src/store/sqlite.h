/// \file
/// SQLite with its resources owned and its errors thrown. Failures leave this folder as Results
/// only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace watchdog {

/// Thrown inside the store folder; caught where its public functions end.
struct SqlFailure {
  Error error;
};

/// A prepared statement. Texts are bound without a copy: they must live until the next reset.
class Statement {
 public:
  Statement(sqlite3* connection, std::string_view sql);
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
  void abandon() noexcept { statement_ = nullptr; }

 private:
  sqlite3_stmt* statement_ = nullptr;
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

enum class OpenMode : std::uint8_t { read_only, read_write_create };

/// A connection. Use from one thread at a time.
class Database {
 public:
  Database(const std::string& path, OpenMode mode);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void exec(const char* sql);
  [[nodiscard]] Statement prepare(std::string_view sql) { return {connection_, sql}; }
  [[nodiscard]] std::int64_t pragma(const char* name);
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Forgets the connection without closing it: what a forked child must do with its parent's.
  void abandon() noexcept { connection_ = nullptr; }

 private:
  std::string path_;
  sqlite3* connection_ = nullptr;
};

/// What happens in its scope happens in one transaction; left without commit(), in none.
class Transaction {
 public:
  enum class Kind : std::uint8_t {
    write,  ///< Takes SQLite's write lock at once.
    read    ///< One unchanging view; may stand inside another transaction.
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
inline constexpr int schema_minor = 3;
inline constexpr std::int64_t application_id = 0x57444F47;  // "WDOG"

/// Creates the tables if the file is empty, brings those of an older minor version up to date, and
/// refuses what this program cannot work with.
void prepare_schema(Database& database, OpenMode mode);

}  // namespace watchdog
