#include "process/search_allowance.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

using std::chrono::milliseconds;
using Time = SearchAllowance::Time;

constexpr Time start{std::chrono::hours(1)};

TEST(SearchAllowance, allows_several_searches_at_once_after_a_quiet_time) {
  SearchAllowance allowance;
  for (int search = 0; search < 10; ++search) {
    EXPECT_TRUE(allowance.allows(start)) << search;
    allowance.spend(milliseconds(40));
  }
}

TEST(SearchAllowance, limits_constant_searches_to_a_twentieth_of_the_time) {
  SearchAllowance allowance;
  milliseconds used{};
  for (Time now = start; now < start + std::chrono::minutes(10); now += milliseconds(10)) {
    if (!allowance.allows(now)) continue;
    allowance.spend(milliseconds(7));
    used += milliseconds(7);
  }
  const auto share = milliseconds(std::chrono::minutes(10)) / SearchAllowance::share;
  EXPECT_GT(used, share);
  EXPECT_LT(used, share + SearchAllowance::saved_max + milliseconds(7));
}

TEST(SearchAllowance, refuses_after_a_long_search_until_its_share_has_passed) {
  SearchAllowance allowance;
  ASSERT_TRUE(allowance.allows(start));
  allowance.spend(milliseconds(600));
  EXPECT_FALSE(allowance.allows(start + milliseconds(1'999)));
  EXPECT_TRUE(allowance.allows(start + milliseconds(2'020)));
}

}  // namespace
}  // namespace watchdog::monitor
