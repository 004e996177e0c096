/// \file
/// What a heartbeat costs the agent that sends it.
#include <array>
#include <mutex>

#include "bench.h"
#include "support/temp_dir.h"
#include "watchdog/tracker.h"

namespace watchdog::bench {
namespace {

constexpr int beats = 2'000'000;
constexpr double ns = 1e9 / beats;

/// The least that a heartbeat can do: read the clock, keep what is current, hand a record over.
class Floor {
 public:
  Floor() { records_.reserve(capacity); }

  void heartbeat(std::int64_t iteration) {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const std::int64_t now_ms = now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
    const std::lock_guard guard(mutex_);
    slot_.last_ms = now_ms;
    slot_.iteration = iteration;
    ++slot_.count;
    if (records_.size() == capacity) records_.clear();  // as if its reader had just been there
    records_.push_back({slot_.last_ms, slot_.iteration, slot_.count});
  }

 private:
  struct Slot {
    std::int64_t last_ms = 0;
    std::int64_t iteration = 0;
    std::int64_t count = 0;
  };
  using Record = std::array<std::int64_t, 8>;  // 64 bytes
  static constexpr std::size_t capacity = 1024;

  std::mutex mutex_;
  Slot slot_;
  std::vector<Record> records_;
};

void heartbeat_in_process(Table& table) {
  const test::TempDir dir;
  ProgressTracker tracker({.database = dir / "bench.db"});
  must(tracker.flush());  // the file is open from here on
  Floor floor;
  const auto found = by_turns(
      15,
      [&] {
        return ns * cpu_of([&] {
                 for (int i = 0; i < beats; ++i)
                   (void)tracker.heartbeat({.iteration = i, .phase = "act"});
               });
      },
      [&] {
        return ns * cpu_of([&] {
                 for (int i = 0; i < beats; ++i) floor.heartbeat(i);
               });
      });
  table.add("heartbeat_in_process", "ns", found, at_most(2));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::heartbeat_in_process(table);
  return table.exit_code();
}
