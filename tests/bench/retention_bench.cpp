/// \file
/// What heartbeats leave behind once retention has been through them, how quickly it makes a file
/// smaller, and whether it keeps up with what comes in.
#include <sqlite3.h>

#include <array>

#include "bench.h"
#include "observer/observer.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

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
  // Minutes pass between two looks of the observer: with `late_max`, that is not an absence.
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
      beat.detail = Heartbeats{.first = now,
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

  const Retention retention{.folded_through = must(EventReader(store.reader()).newest()).first};
  const double seconds = cpu_of([&] {
    while (must(RetentionActs(store).trim(retention))) {
    }
  });
  table.add("heartbeat_bytes", "MB", file_mb(database) - before, at_most(1));
  table.add("heartbeat_trim_cpu", "us", 1e6 * seconds / beats);
}

constexpr double mib = 1024.0 * 1024.0;

/// Sessions of 50 events each; all but the last have ended.
std::vector<Batch> work_of(int& number, int events) {
  std::vector<Batch> batches;
  for (int at = 0; at < events; at += 50, ++number) {
    Batch batch{.session = "agent-" + std::to_string(number)};
    for (int step = 0; step < 49; ++step) {
      batch.reports.push_back({.kind = ReportKind::state_change,
                               .name = "step",
                               .content = std::to_string(number) + std::string(180, 'd')});
    }
    batch.reports.push_back(
        {.kind = ReportKind::end, .detail = Outcome{.reason = "task_complete"}});
    batches.push_back(std::move(batch));
  }
  return batches;
}

void shrink_rate(Table& table) {
  const test::TempDir dir;
  Store store = must(Store::open({.database = dir / "bench.db"}));
  const auto observer = must(Observer::start(store, {}));
  for (int number = 0; number < 4'000;) {
    auto work = work_of(number, 5'000);
    must(store.append(work));
    (void)must(observer->look());
  }
  const auto before = store.bytes();
  const Retention retention{.bytes_max = before / 10, .folded_through = observer->folded()};
  const double seconds = wall_of([&] {
    while (must(RetentionActs(store).trim(retention))) {
    }
  });
  table.add("retention_shrinks", "MiB/s",
            static_cast<double>(before - store.bytes()) / mib / seconds);
}

/// As the monitor's store thread does: what came in, a look, a piece of retention.
void keeping_up(Table& table) {
  constexpr double events_per_second = 8'000;
  constexpr double seconds = 10;
  constexpr std::int64_t limit = 10'000'000;
  const test::TempDir dir;
  Store store = must(Store::open({.database = dir / "bench.db"}));
  const auto observer = must(Observer::start(store, {}));
  std::int64_t largest = 0;
  double sent = 0;
  int number = 0;
  const double began = seconds_of(CLOCK_MONOTONIC);
  const auto passed = [&] { return seconds_of(CLOCK_MONOTONIC) - began; };
  while (passed() < seconds) {
    const auto due = passed() * events_per_second - sent;
    if (due >= 50) {
      const int events = static_cast<int>(due) / 50 * 50;
      auto work = work_of(number, events);
      must(store.append(work));
      (void)must(observer->look());
      sent += events;
    }
    if (store.bytes() > limit) {
      (void)must(
          RetentionActs(store).trim({.bytes_max = limit, .folded_through = observer->folded()}));
    }
    largest = std::max(largest, store.bytes());
  }
  table.add("retention_keeps_up_bytes", "MB", static_cast<double>(largest) / 1e6, at_most(13.5));
  table.add("retention_keeps_up_events", "1/s", sent / seconds);
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::heartbeat_bytes(table);
  watchdog::bench::shrink_rate(table);
  watchdog::bench::keeping_up(table);
  return table.exit_code();
}
