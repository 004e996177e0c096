#include <gtest/gtest.h>

#include <random>

#include "report/beat_row.h"
#include "support/scenario.h"
#include "watchdog/history.h"
#include "watchdog/report.h"

namespace watchdog {
namespace {

bool equal(const Heartbeats& a, const Heartbeats& b) {
  return a.count == b.count && a.first == b.first && a.last == b.last && a.max_gap == b.max_gap &&
         a.iteration == b.iteration && a.iteration_first == b.iteration_first &&
         a.phase == b.phase && a.source == b.source && a.counters == b.counters &&
         a.fresh == b.fresh && a.quiet == b.quiet;
}

struct RandomBeats {
  std::mt19937 random{test::random_seed()};
  Instant now{Millis{1'000'000}};
  std::int64_t iteration = 0;
  double tokens = 0;

  Heartbeat next(std::vector<Counter>& counters) {
    now += Millis{random() % 20'000};
    if (random() % 3 == 0) ++iteration;
    if (random() % 4 == 0) tokens += 1;
    counters.clear();
    if (random() % 5 != 0) counters.push_back({"tokens", tokens});
    Heartbeat beat{.phase = "think", .counters = counters, .source = Source::loop};
    if (random() % 6 != 0) beat.iteration = iteration;
    return beat;
  }
};

TEST(Heartbeats, gathering_without_allocation_equals_absorbing_one_by_one) {
  RandomBeats beats;
  for (int round = 0; round < test::repetitions(5'000); ++round) {
    std::vector<Counter> counters;
    auto first = beats.next(counters);
    Heartbeats gathered = row_of(first, beats.now);
    Heartbeats absorbed = gathered;
    for (int i = 0; i < 20; ++i) {
      const auto beat = beats.next(counters);
      extend(gathered, beat, beats.now);
      absorb(absorbed, row_of(beat, beats.now));
      ASSERT_TRUE(equal(gathered, absorbed));
    }
  }
}

// However heartbeats are cut into rows, a history comes out the same.
TEST(Heartbeats, rows_are_additive_for_every_statistic_of_the_judge) {
  RandomBeats beats;
  for (int round = 0; round < test::repetitions(5'000); ++round) {
    History by_one;
    History by_rows;
    const auto fold = [](History& history, Heartbeats row) {
      Event event{.seq = history.seq + 1, .session = 1, .tick = row.last};
      event.report.detail = std::move(row);
      apply(history, event, Policy{});
    };
    std::optional<Heartbeats> row;
    std::vector<Counter> counters;
    for (int i = 0; i < 40; ++i) {
      const auto single = row_of(beats.next(counters), beats.now);
      fold(by_one, single);
      if (!row) {
        row = single;
      } else if (beats.random() % 4 == 0) {
        fold(by_rows, *row);
        row = single;
      } else {
        absorb(*row, single);
      }
    }
    fold(by_rows, *row);
    ASSERT_EQ(by_one.heartbeats, by_rows.heartbeats);
    ASSERT_EQ(by_one.loop_beats_since_change, by_rows.loop_beats_since_change);
    ASSERT_EQ(by_one.loop_beats_since_rise, by_rows.loop_beats_since_rise);
    ASSERT_EQ(by_one.iteration, by_rows.iteration);
    ASSERT_EQ(by_one.last_beat, by_rows.last_beat);
    ASSERT_EQ(*by_one.counters, *by_rows.counters);
  }
}

TEST(Heartbeats, unsaid_source_counts_as_loop_only_where_its_position_is_new) {
  History history;
  Heartbeats bare;
  EXPECT_EQ(loop_beats_in(history, bare), 0) << "it says only that the process is alive";
  history.gives_position = true;
  history.iteration = 3;
  history.phase = "think";
  EXPECT_EQ(loop_beats_in(history, bare), 0);
  const auto at = [](std::int64_t iteration, const char* phase) {
    return Heartbeats{.iteration_first = iteration, .iteration = iteration, .phase = phase};
  };
  EXPECT_EQ(loop_beats_in(history, at(3, "think")), 0);
  EXPECT_EQ(loop_beats_in(history, at(4, "think")), 1);
  EXPECT_EQ(loop_beats_in(history, at(3, "act")), 1);
}

TEST(GapWindow, forgets_a_gap_after_fifty_more) {
  GapWindow window;
  window.add(Millis{90'000}, 1);
  for (int i = 0; i < 49; ++i) window.add(Millis{1'000}, 1);
  EXPECT_EQ(window.longest(), Millis{90'000});
  for (int i = 0; i < 12; ++i) window.add(Millis{1'000}, 1);
  EXPECT_EQ(window.longest(), Millis{1'000});
}

}  // namespace
}  // namespace watchdog
