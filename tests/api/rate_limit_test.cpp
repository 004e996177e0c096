// How often somebody may do something.
#include "api/rate_limit.h"

#include <gtest/gtest.h>

#include <vector>

namespace watchdog::monitor {
namespace {

using std::chrono::milliseconds;

/// At a moment: whether it may, and how long it would have to wait then.
struct Step {
  int at_ms;
  bool may;
  int wait_ms;
};
struct Row {
  const char* story;
  double per_second;
  double at_once;
  std::vector<Step> steps;
};
void PrintTo(const Row& row, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << row.story;
}

class Limit : public testing::TestWithParam<Row> {};

TEST_P(Limit, is_kept) {
  RateLimit limit(GetParam().per_second, GetParam().at_once);
  for (const auto& step : GetParam().steps) {
    const Millis now{step.at_ms};
    EXPECT_EQ(limit.admit(now), step.may) << "at " << step.at_ms;
    EXPECT_EQ(limit.wait(now).count(), step.wait_ms) << "at " << step.at_ms;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Table, Limit,
    testing::Values(
        Row{"full at the beginning", 1, 2, {{0, true, 0}, {0, true, 1000}, {0, false, 1000}}},
        Row{"refills while nothing is taken",
            2,
            2,
            {{0, true, 0}, {0, true, 500}, {250, false, 250}, {500, true, 500}}},
        Row{"never above what goes at once",
            100,
            2,
            {{1'000'000, true, 0}, {1'000'000, true, 10}, {1'000'000, false, 10}}},
        Row{"being refused costs nothing",
            1,
            1,
            {{0, true, 1000}, {400, false, 600}, {900, false, 100}, {1000, true, 1000}}},
        Row{"stands still when time runs backwards",
            1,
            1,
            {{5000, true, 1000}, {0, false, 1000}, {5999, false, 1}, {6000, true, 1000}}},
        Row{"ten a minute", 10. / 60, 1, {{0, true, 6000}, {5999, false, 1}, {6000, true, 6000}}}));

TEST(PeerLimits, are_each_peers_own) {
  PeerLimits limits(1, 1);
  EXPECT_TRUE(limits.of("a", Millis{0}).admit(Millis{0}));
  EXPECT_FALSE(limits.of("a", Millis{0}).admit(Millis{0}));
  EXPECT_TRUE(limits.of("b", Millis{0}).admit(Millis{0}));
}

TEST(PeerLimits, remember_who_is_busy_and_forget_the_rest_when_there_are_too_many) {
  PeerLimits limits(1, 1);
  for (std::size_t n = 0; n + 1 < peers_max; ++n)
    (void)limits.of(std::to_string(n), Millis{0}).admit(Millis{0});
  const Millis later{60'000};
  (void)limits.of("busy", later).admit(later);
  EXPECT_EQ(limits.size(), peers_max);
  (void)limits.of("one more", later).admit(later);
  EXPECT_EQ(limits.size(), 2U);
  EXPECT_FALSE(limits.of("busy", later).admit(later));
}

}  // namespace
}  // namespace watchdog::monitor
