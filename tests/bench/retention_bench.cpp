/// \file
/// What heartbeats leave behind once retention has been through them.
#include <sqlite3.h>

#include <array>

#include "bench.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"
#include "watchdog/observer.h"

namespace watchdog::bench {
namespace {

using namespace std::chrono_literals;

constexpr int beats = 1'000'000;  // 116 days of them
/// Each in a batch and so a row of its own; a transaction for each would wait minutes for the disk.
constexpr int per_transaction = 20;

/// The file's size with nothing left in its write-ahead log.
double file_mb(const std::filesystem::path& database) {
  sqlite3* connection = nullptr;
  int busy = 1;
  const auto first_column = [](void* into, int, char** values, char**) {
    *static_cast<int*>(into) = std::atoi(values[0]);
    return 0;
  };
  const bool done = sqlite3_open(database.c_str(), &connection) == SQLITE_OK &&
                    sqlite3_exec(connection, "PRAGMA wal_checkpoint(TRUNCATE)", first_column, &busy,
                                 nullptr) == SQLITE_OK;
  sqlite3_close(connection);
  std::error_code trouble;
  const auto bytes = std::filesystem::file_size(database, trouble);
  if (!done || busy != 0 || trouble) give_up("no checkpoint of " + database.string());
  return static_cast<double>(bytes) / 1e6;
}

void heartbeat_bytes(Table& table) {
  const test::TempDir dir;
  const auto database = dir / "bench.db";
  test::ManualClock clock;
  Store store = must(Store::open({.database = database, .clock = &clock}));
  // Minutes pass between two looks; that is no absence here.
  const auto observer = must(Observer::start(store, {.late_max = 1h}));
  std::array<Batch, per_transaction> group;
  group[0] = {.session = "agent", .reports = {{.kind = ReportKind::state_change, .name = "step"}}};
  must(store.append({group.data(), 1}));
  const double before = file_mb(database);

  for (int sent = 0; sent < beats;) {
    for (auto& batch : group) {
      clock.advance(10s);
      const Instant now{clock.since_boot()};
      Report beat;
      beat.detail = Beats{.first = now,
                          .last = now,
                          .iteration_first = sent,
                          .iteration = sent,
                          .phase = "act",
                          .source = Source::loop};
      batch = {.session = "agent", .reports = {std::move(beat)}};
      ++sent;
    }
    must(store.append(group));
    (void)must(observer->look());
  }
  (void)must(observer->look());
  must(observer->checkpoint());
  table.add("heartbeat_bytes_before_trim", "MB", file_mb(database) - before);

  const Retention retention{.folded_through = must(store.reader().newest()).first};
  const double seconds = cpu_of([&] {
    while (must(store.trim(retention))) {
    }
  });
  table.add("heartbeat_bytes", "MB", file_mb(database) - before, at_most(1));
  table.add("heartbeat_trim_cpu", "us", 1e6 * seconds / beats);
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::heartbeat_bytes(table);
  return table.exit_code();
}
