/// \file
/// A store's rows through SQLite alone: the events, and the newest event of each session that a
/// transaction touched. No look at what is there, no redaction, no digest.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "bench.h"
#include "store/store.h"
#include "watchdog/report.h"

namespace watchdog::bench {

class BareSqlite {
 public:
  BareSqlite(const std::filesystem::path& database, int sessions)
      : heads_(static_cast<std::size_t>(sessions)) {
    (void)must(Store::open({.database = database}));  // makes the tables
    check(sqlite3_open_v2(database.c_str(), &connection_,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    run("PRAGMA synchronous = FULL");
    check(sqlite3_prepare_v3(
        connection_,
        "INSERT INTO events (seq, session, prev, tick_ms, at_ms, kind, late, name, content, "
        "digest, bytes, event_id, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        -1, SQLITE_PREPARE_PERSISTENT, &insert_, nullptr));
    check(
        sqlite3_prepare_v3(connection_,
                           "INSERT INTO heads (session, seq, events) VALUES (?, ?, ?) ON CONFLICT "
                           "(session) DO UPDATE SET seq = excluded.seq, events = excluded.events",
                           -1, SQLITE_PREPARE_PERSISTENT, &upsert_, nullptr));
  }
  ~BareSqlite() {
    sqlite3_finalize(insert_);
    sqlite3_finalize(upsert_);
    sqlite3_close(connection_);
  }
  BareSqlite(const BareSqlite&) = delete;
  BareSqlite& operator=(const BareSqlite&) = delete;

  void begin() {
    run("BEGIN IMMEDIATE");
    now_ = system_clock().wall().time_since_epoch().count();
  }
  void commit() {
    for (std::size_t session = 0; session < heads_.size(); ++session) {
      Head& head = heads_[session];
      if (!std::exchange(head.touched, false)) continue;
      sqlite3_bind_int64(upsert_, 1, static_cast<std::int64_t>(session) + 1);
      sqlite3_bind_int64(upsert_, 2, head.seq);
      sqlite3_bind_int64(upsert_, 3, head.events);
      check(sqlite3_step(upsert_));
      sqlite3_reset(upsert_);
    }
    run("COMMIT");
  }

  void insert(int session, std::string_view type, std::string_view data) {
    Head& head = heads_[static_cast<std::size_t>(session)];
    sqlite3_bind_int64(insert_, 1, ++seq_);
    sqlite3_bind_int64(insert_, 2, session + 1);
    sqlite3_bind_int64(insert_, 3, head.seq);
    sqlite3_bind_int64(insert_, 4, now_);
    sqlite3_bind_int64(insert_, 5, now_);
    sqlite3_bind_int64(insert_, 6, static_cast<int>(ReportKind::state_change));
    sqlite3_bind_int64(insert_, 7, 0);
    sqlite3_bind_text(insert_, 8, type.data(), static_cast<int>(type.size()), SQLITE_STATIC);
    sqlite3_bind_text(insert_, 9, data.data(), static_cast<int>(data.size()), SQLITE_STATIC);
    // As long as a digest.
    sqlite3_bind_int64(
        insert_, 10,
        static_cast<std::int64_t>(static_cast<std::uint64_t>(seq_) * 0x9E3779B97F4A7C15U));
    sqlite3_bind_int64(insert_, 11, static_cast<std::int64_t>(data.size()));
    sqlite3_bind_null(insert_, 12);
    sqlite3_bind_null(insert_, 13);
    check(sqlite3_step(insert_));
    sqlite3_reset(insert_);
    head.seq = seq_;
    head.touched = true;
    ++head.events;
  }

 private:
  struct Head {
    Seq seq = 0;
    std::int64_t events = 0;
    bool touched = false;
  };

  void check(int code) const {
    if (code != SQLITE_OK && code != SQLITE_DONE) give_up(sqlite3_errmsg(connection_));
  }
  void run(const char* sql) { check(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr)); }

  std::vector<Head> heads_;
  Seq seq_ = 0;
  std::int64_t now_ = 0;
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
  sqlite3_stmt* upsert_ = nullptr;
};

}  // namespace watchdog::bench
