/// \file
/// What it costs a run that a model is asked about it meanwhile.
#include <array>
#include <ctime>

#include "bench.h"
#include "store/event_reader.h"
#include "store/store_reader.h"
#include "support/temp_dir.h"
#include "watchdog/run.h"

namespace watchdog::bench {
namespace {

constexpr int iterations = 200;
constexpr auto thinking = 2e-3;  ///< Seconds of work in each reflection, as an agent has some.

/// Keeps its core busy for `seconds` of CPU time.
void work(double seconds) {
  const auto until = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

/// A run that repeats itself all the time, so that it is suspected and, with a checker, asked
/// about. Seconds an iteration; how many opinions it got is counted.
double loop_time(bool checked, int& opinions) {
  const test::TempDir dir;
  ProgressTracker tracker({.session = "s", .database = dir / "bench.db", .sidecar = false});
  must(tracker.flush());
  const auto checker = checker_for(tracker,
                                   [](const ChatRequest&, const ChatSink&,
                                      const std::stop_token&) -> Result<ChatAnswer, Failure> {
                                     // A model elsewhere: it takes its time, but not this
                                     // machine's.
                                     const timespec timeout{.tv_sec = 0, .tv_nsec = 20'000'000};
                                     nanosleep(&timeout, nullptr);
                                     return ChatAnswer{.text = "B: it repeats itself"};
                                   });
  Run run({.tracker = tracker,
           .callbacks = {.reflect =
                             [](Iteration&) {
                               work(thinking);
                               return Reflection{.data = "the same"};
                             },
                         .act =
                             [](Iteration& now, const Reflection&) {
                               now.tracker().tool_call("read_file", R"({"path":"a"})");
                               now.tracker().tool_result("read_file", "nothing in it");
                               return Act{.reported = true};
                             }},
           .checker = checked ? checker.get() : nullptr},
          {.iterations_max = iterations, .check_wait = Millis{0}});
  const double seconds = wall_of([&] { run.go(); });
  auto reader = must(StoreReader::open(tracker.database()));
  const auto row = must(reader.session("s"));
  for (Seq after = 0;;) {
    const auto page = must(EventReader(reader).page(row.key, after, 1'000, ReportKind::opinion));
    opinions += static_cast<int>(page.events.size());
    if (!page.next) break;
    after = *page.next;
  }
  return 1e3 * seconds / iterations;
}

void checks_beside_the_loop(Table& table) {
  int with = 0;
  int without = 0;
  const auto found = by_turns(
      9, [&] { return loop_time(true, with); }, [&] { return loop_time(false, without); });
  if (with == 0 || without != 0) give_up("the checks did not happen where they should");
  table.add("loop_with_checks", "ms", found, at_most(1.05));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::checks_beside_the_loop(table);
  return table.exit_code();
}
