#include "outputs/time_line.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

constexpr Millis day = 24h;

TEST(TimeLine, ages_only_while_the_clocks_agree_and_no_leap_is_recent) {
  ManualClock clock;
  const auto line = TimeLine::continued({}, clock);
  EXPECT_EQ(line.now(clock), clock.wall());
  EXPECT_FALSE(line.may_age(clock)) << "the wall clock at its begin may be wrong";
  clock.advance(TimeLine::differ_max);
  EXPECT_FALSE(line.may_age(clock));
  clock.advance(1ms);
  EXPECT_TRUE(line.may_age(clock));
  for (const auto wrong : {TimeLine::differ_max, 40 * day}) {
    const bool agrees = wrong == TimeLine::differ_max;
    clock.set_wrong(wrong);
    EXPECT_EQ(line.may_age(clock), agrees);
    clock.set_wrong(-wrong);
    EXPECT_EQ(line.may_age(clock), agrees);
    clock.set_wrong(0ms);
  }
}

TEST(TimeLine, never_goes_back) {
  ManualClock clock;
  auto kept = TimeLine::continued({}, clock);
  clock.advance(day);
  kept.last = kept.now(clock);
  EXPECT_EQ(TimeLine::continued(kept, clock), kept) << "the same start of the machine";
  ManualClock early("next boot");  // a day before `last`
  const auto next = TimeLine::continued(kept, early);
  EXPECT_EQ(next.now(early), kept.last);
  EXPECT_EQ(next.leap, kept.leap);
  EXPECT_FALSE(next.may_age(early)) << "the wall clock is a day behind";
}

TEST(TimeLine, leaps_where_the_machine_was_off_for_more_than_an_hour) {
  ManualClock clock;
  const auto kept = TimeLine::continued({}, clock);
  ManualClock soon("soon");
  soon.advance(TimeLine::differ_max);
  EXPECT_EQ(TimeLine::continued(kept, soon).leap, kept.leap);
  ManualClock later("later");
  later.advance(day);
  EXPECT_EQ(TimeLine::continued(kept, later).leap, later.wall());
}

TEST(TimeLine, reads_its_own_text_and_nothing_else) {
  ManualClock clock;
  const auto line = TimeLine::continued({}, clock);
  EXPECT_EQ(TimeLine::from(line.text()), line);
  for (const auto* text : {"", "boot", "boot 1 2", "boot one 2 3", "boot 9223372036854775807 2 3",
                           "boot 1 -9223372036854775808 3", "boot 1 2 99999999999999999999"})
    EXPECT_FALSE(TimeLine::from(text)) << text;
}

}  // namespace
}  // namespace watchdog::test
