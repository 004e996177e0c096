/// \file
/// What keeping events costs beside SQLite itself, and what reading a page of them costs.
#include <sqlite3.h>

#include <fstream>
#include <random>

#include "bench.h"
#include "support/temp_dir.h"
#include "watchdog/store.h"

namespace watchdog::bench {
namespace {

constexpr std::size_t data_bytes = 200;  // as much as is kept by default
constexpr int per_transaction = 1'000;
constexpr int transactions = 50;  // in one sample: some checkpoints among them
constexpr int pairs = 20;         // with the round that does not count, a million events and more
constexpr std::string_view type = "step";

struct Said {
  int session = 0;
  std::string data;
};

/// What agents say. Two of the same number of sessions say the same.
class Agents {
 public:
  explicit Agents(int sessions) : sessions_(sessions) {}

  std::vector<Said> say(int count) {
    std::vector<Said> all(static_cast<std::size_t>(count));
    for (auto& said : all) {
      said.session = static_cast<int>(random_() % static_cast<unsigned>(sessions_));
      said.data = R"({"iteration":)" + std::to_string(random_() % 100'000) + R"(,"file":"src/parser/lexer.cpp",)" +
                  R"("note":"two of nineteen tests still fail; the last edit made the scanner skip a comma )" +
                  R"(after a comment, so the list that follows is read as one item)";
      said.data.resize(data_bytes - 2, '.');
      said.data += "\"}";
    }
    return all;
  }

 private:
  int sessions_;
  std::mt19937 random_{1};  // NOLINT(cert-msc51-cpp): the same numbers for both, on purpose
};

std::string session_name(int session) { return "agent-" + std::to_string(session); }

/// What this process asked the kernel to write. Its `write_bytes` would count whole pages, once for each
/// time they become dirty, and nothing at all on some filesystems.
double bytes_written() {
  std::ifstream io("/proc/self/io");
  std::string name;
  double value = 0;
  while (io >> name >> value) {
    if (name == "wchar:") return value;
  }
  give_up("/proc/self/io has no wchar");
}

class ThroughStore {
 public:
  ThroughStore(const std::filesystem::path& database, int sessions)
      : store_(must(Store::open({.database = database}))), agents_(sessions) {}

  /// Seconds on the clock given.
  double append(clockid_t clock, int count, int events_each) {
    const double before = bytes_written();
    double seconds = 0;
    for (int i = 0; i < count; ++i) {
      std::vector<Batch> batches;
      for (auto& said : agents_.say(events_each)) {
        Batch& batch = batches.emplace_back(Batch{.session = session_name(said.session)});
        batch.reports.push_back(
            {.kind = ReportKind::state_change, .name = std::string(type), .content = std::move(said.data)});
      }
      seconds += time_of(clock, [&] { must(store_->append(batches)); });
      payload_ += static_cast<double>(events_each) * data_bytes;
    }
    written_ += bytes_written() - before;
    return seconds;
  }

  /// The end of the store: what waits in the write-ahead log goes to the file.
  double bytes_per_payload_byte() {
    const double before = bytes_written();
    store_.reset();
    return (written_ + bytes_written() - before) / payload_;
  }

 private:
  std::optional<Store> store_;
  Agents agents_;
  double written_ = 0;
  double payload_ = 0;
};

/// The same rows through SQLite alone: one table, no look at what is there, no redaction, no digest.
class ThroughSqlite {
 public:
  ThroughSqlite(const std::filesystem::path& database, int sessions)
      : agents_(sessions), heads_(static_cast<std::size_t>(sessions)) {
    (void)must(Store::open({.database = database}));  // makes the tables
    check(sqlite3_open_v2(database.c_str(), &connection_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    run("PRAGMA synchronous = FULL");
    check(sqlite3_prepare_v3(connection_,
                             "INSERT INTO events (seq, session, prev, tick_ms, at_ms, kind, late, name, content, "
                             "digest, bytes, event_id, facts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             -1, SQLITE_PREPARE_PERSISTENT, &insert_, nullptr));
  }
  ~ThroughSqlite() {
    sqlite3_finalize(insert_);
    sqlite3_close(connection_);
  }
  ThroughSqlite(const ThroughSqlite&) = delete;
  ThroughSqlite& operator=(const ThroughSqlite&) = delete;

  double append(clockid_t clock, int count, int events_each) {
    double seconds = 0;
    for (int i = 0; i < count; ++i) {
      const auto all = agents_.say(events_each);
      seconds += time_of(clock, [&] {
        run("BEGIN IMMEDIATE");
        const auto now = system_clock().wall().time_since_epoch().count();
        for (const auto& said : all) insert(said, now);
        run("COMMIT");
      });
    }
    return seconds;
  }

 private:
  void check(int code) const {
    if (code != SQLITE_OK && code != SQLITE_DONE) give_up(sqlite3_errmsg(connection_));
  }
  void run(const char* sql) { check(sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr)); }

  void insert(const Said& said, std::int64_t now) {
    Seq& head = heads_[static_cast<std::size_t>(said.session)];
    sqlite3_bind_int64(insert_, 1, ++seq_);
    sqlite3_bind_int64(insert_, 2, said.session + 1);
    sqlite3_bind_int64(insert_, 3, head);
    sqlite3_bind_int64(insert_, 4, now);
    sqlite3_bind_int64(insert_, 5, now);
    sqlite3_bind_int64(insert_, 6, static_cast<int>(ReportKind::state_change));
    sqlite3_bind_int64(insert_, 7, 0);
    sqlite3_bind_text(insert_, 8, type.data(), static_cast<int>(type.size()), SQLITE_STATIC);
    sqlite3_bind_text(insert_, 9, said.data.data(), static_cast<int>(said.data.size()), SQLITE_STATIC);
    sqlite3_bind_int64(insert_, 10, ~seq_);  // as long as any digest
    sqlite3_bind_int64(insert_, 11, static_cast<std::int64_t>(said.data.size()));
    sqlite3_bind_null(insert_, 12);
    sqlite3_bind_null(insert_, 13);
    check(sqlite3_step(insert_));
    sqlite3_reset(insert_);
    head = seq_;
  }

  Agents agents_;
  std::vector<Seq> heads_;
  Seq seq_ = 0;
  sqlite3* connection_ = nullptr;
  sqlite3_stmt* insert_ = nullptr;
};

Comparison rate_of(Comparison seconds, double events) {
  return {events / seconds.measured, events / seconds.comparator, 1 / seconds.ratio};
}

/// The first page of a session's events, each time through a new connection that has nothing cached.
double first_page_ms(const std::filesystem::path& database, int sessions) {
  std::vector<double> ms;
  for (int i = 0; i < 100; ++i) {
    auto reader = must(StoreReader::open(database));
    const auto key = must(reader.session(session_name(i % sessions))).key;
    ms.push_back(1e3 * wall_of([&] {
      if (must(reader.page(key, 0, 100)).events.size() != 100) give_up("a page is not full");
    }));
  }
  return median(ms);
}

void at_load(Table& table, int sessions) {
  const auto load = sessions == 1 ? std::string("_1_session") : "_" + std::to_string(sessions) + "_sessions";
  const test::TempDir dir;
  const auto database = dir / "bench.db";
  ThroughStore store(database, sessions);
  {
    const test::TempDir other;
    ThroughSqlite sqlite(other / "bare.db", sessions);
    const auto sample = [](auto& side) {
      return [&side] { return side.append(CLOCK_PROCESS_CPUTIME_ID, transactions, per_transaction); };
    };
    const auto seconds = by_turns(pairs, sample(store), sample(sqlite));
    table.add("persist" + load, "/CPU s", rate_of(seconds, transactions * per_transaction), at_least(0.7));
  }
  table.add("write_bytes" + load, "B/B", store.bytes_per_payload_byte(), at_most(4));
  table.add("paging" + load, "ms", first_page_ms(database, sessions), at_most(5));
}

/// An event that somebody waits for. No promise beside that of commit_latency.
void single_commits(Table& table) {
  const test::TempDir dir;
  ThroughStore store(dir / "bench.db", 1);
  ThroughSqlite sqlite(dir / "bare.db", 1);
  constexpr int commits = 300;
  const auto compare = [&](clockid_t clock) {
    return by_turns(
        9, [&] { return 1e6 / commits * store.append(clock, commits, 1); },
        [&] { return 1e6 / commits * sqlite.append(clock, commits, 1); });
  };
  table.add("persist_1_event_cpu", "us", compare(CLOCK_PROCESS_CPUTIME_ID));
  table.add("persist_1_event_wall", "us", compare(CLOCK_MONOTONIC));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::at_load(table, 1);
  watchdog::bench::at_load(table, 1'000);
  watchdog::bench::single_commits(table);
  return table.exit_code();
}
