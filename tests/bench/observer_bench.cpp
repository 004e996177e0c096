/// \file
/// What judging costs: memory for each session, work for each event, and nothing for the idle.
#include <malloc.h>

#include <array>

#include "bench.h"
#include "observer/observer.h"
#include "store/event_reader.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace watchdog::bench {
namespace {

constexpr int per_transaction = 1'000;

std::string session_name(int session) {
  std::array<char, 27> name{};  // as long as a ULID
  std::snprintf(name.data(), name.size(), "agent-%020d", session);
  return name.data();
}

const Heartbeats from_loop{
    .iteration_first = 1, .iteration = 1, .phase = "act", .source = Source::loop};
/// From a helper. The observer misses a helper that sent several heartbeats and then stops.
const Heartbeats from_helper{.count = 2, .source = Source::sidecar};

/// Each session changes its state and sends a heartbeat.
void append(Store& store, int sessions, const Heartbeats& beats) {
  for (int from = 0; from < sessions; from += per_transaction) {
    std::vector<Batch> batches;
    for (int session = from; session < std::min(sessions, from + per_transaction); ++session) {
      Report beat;
      beat.detail = beats;
      batches.push_back(
          {.session = session_name(session),
           .reports = {{.kind = ReportKind::state_change, .name = "step"}, std::move(beat)}});
    }
    must(store.append(batches));
  }
}

double bytes_allocated() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);  // large tables are mapped by themselves
}

void memory(Table& table) {
  constexpr int sessions = 100'000;
  const test::TempDir dir;
  const test::ManualClock clock;
  // The writer is another connection, as agents are: what it remembers is not the observer's.
  std::optional<Store> writer = must(Store::open({.database = dir / "bench.db", .clock = &clock}));
  Store store = must(Store::open({.database = dir / "bench.db", .clock = &clock}));
  const auto observer = must(Observer::start(store, {}));
  append(*writer, sessions, from_loop);
  writer.reset();
  // Fills SQLite's cache of pages, which is bounded and no session's.
  must(EventReader(store.reader()).after(0, 2 * sessions));
  const double before = bytes_allocated();
  (void)must(observer->look());
  if (observer->watched() != sessions) give_up("sessions are missing");
  const double each = (bytes_allocated() - before) / sessions;
  // The id itself: a string and, as it is longer than a short one, the block that holds its text.
  const auto text = std::make_unique<char[]>(session_name(0).size() + 1);
  const auto id = sizeof(std::string) + malloc_usable_size(text.get()) + sizeof(std::size_t);
  table.add("memory_per_session", "B", each - static_cast<double>(id), at_most(512));
}

/// Beside merely reading the events.
void observer_fold(Table& table) {
  constexpr int sessions = 1'000;
  constexpr int rounds = 20;
  const test::TempDir dir;
  test::ManualClock clock;
  Store store = must(Store::open({.database = dir / "bench.db", .clock = &clock}));
  const auto observer = must(Observer::start(store, {}));
  append(store, sessions, from_loop);
  (void)must(observer->look());
  std::vector<double> folding;
  std::vector<double> reading;
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const Seq from = observer->folded();
    for (int i = 0; i < 5; ++i) {
      clock.advance(Millis{100});
      append(store, sessions / 2, from_loop);
    }
    const double events = 5 * sessions;
    folding.push_back(1e6 / events * cpu_of([&] { (void)must(observer->look()); }));
    reading.push_back(
        1e6 / events * cpu_of([&] {
          for (Seq after = from; after < observer->folded();) {
            after = must(EventReader(store.reader()).after(after, per_transaction)).back().seq;
          }
        }));
    ratios.push_back(folding.back() / reading.back());
  }
  table.add("observer_fold", "us", {median(folding), median(reading), median(ratios)});
}

/// A monitor looks again and again; sessions of which nothing is due must not be touched for it.
void idle_sessions(Table& table) {
  struct Idle {
    explicit Idle(int sessions) {
      append(store, sessions, from_helper);
      observer = must(Observer::start(store, {}));
      if (must(observer->look()) == never) give_up("nothing will ever be due");
    }
    double look() const {
      constexpr int looks = 5'000;
      return 1e6 / looks * cpu_of([&] {
               for (int i = 0; i < looks; ++i) (void)must(observer->look());
             });
    }
    test::TempDir dir;
    test::ManualClock clock;
    Store store = must(Store::open({.database = dir / "bench.db", .clock = &clock}));
    std::unique_ptr<Observer> observer;
  };
  const Idle many(10'000);
  const Idle few(100);
  const auto found = by_turns(
      15, [&] { return many.look(); }, [&] { return few.look(); });
  table.add("idle_sessions_10000_beside_100", "us", found, at_most(1.1));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::memory(table);
  watchdog::bench::observer_fold(table);
  watchdog::bench::idle_sessions(table);
  return table.exit_code();
}
