#include <gtest/gtest.h>

#include "watchdog/run.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> names(const std::vector<LimitPassed>& passed) {
  std::vector<std::string> all;
  for (const auto& one : passed) all.push_back(one.name);
  return all;
}

TEST(OldLimits, speak_once_an_operation_and_say_how_far_it_was) {
  LimitWatch watch({}, 1'000ms);
  watch.begin("planning", 1'000ms);
  EXPECT_EQ(watch.next(), 31'000ms);
  EXPECT_TRUE(watch.drain(30'999ms).empty());
  const auto passed = watch.drain(31'000ms);
  ASSERT_EQ(passed.size(), 1U);
  EXPECT_EQ(passed[0].name, "planning");
  EXPECT_EQ(passed[0].limit, 30'000);
  EXPECT_EQ(passed[0].reached, 30'000);
  EXPECT_TRUE(watch.drain(600'000ms).empty());
  EXPECT_EQ(watch.next(), 601'000ms);  // the task's own
}

TEST(OldLimits, notice_what_nobody_looked_at_while_it_ran) {
  LimitWatch watch({}, 0ms);
  watch.begin("execution", 0ms);
  watch.begin("execution", 45'000ms);  // the first took 45 s
  watch.begin({}, 60'000ms);
  const auto passed = watch.drain(60'000ms);
  ASSERT_EQ(names(passed), (std::vector<std::string>{"tool"}));
  EXPECT_EQ(passed[0].reached, 45'000);
}

TEST(OldLimits, hold_for_each_call_and_not_for_all_of_them_together) {
  LimitWatch watch({}, 0ms);
  watch.begin("execution", 0ms);
  for (int call = 0; call < 5; ++call) {
    watch.begin_call("c", Millis{call * 10'000});
    watch.end_call("c", Millis{call * 10'000 + 9'999});
  }
  EXPECT_TRUE(watch.drain(60'000ms).empty());
  watch.begin_call("slow", 60'000ms);
  watch.begin_call("beside", 65'000ms);
  watch.end_call("beside", 70'000ms);
  EXPECT_EQ(watch.next(), 90'000ms);
  EXPECT_EQ(names(watch.drain(90'000ms)), (std::vector<std::string>{"tool"}));
}

TEST(OldLimits, leave_phases_alone_that_had_none) {
  LimitWatch watch({.task = 0ms}, 0ms);
  watch.begin("reflection", 0ms);
  EXPECT_EQ(watch.next(), std::nullopt);
  EXPECT_TRUE(watch.drain(10'000'000ms).empty());
}

TEST(OldLimits, bound_the_task_and_the_tries_once) {
  LimitWatch watch({}, 0ms);
  watch.attempts(14, 1ms);
  EXPECT_TRUE(watch.drain(1ms).empty());
  watch.attempts(15, 2ms);
  watch.attempts(16, 3ms);
  EXPECT_EQ(names(watch.drain(599'999ms)), (std::vector<std::string>{"health_attempts"}));
  EXPECT_EQ(names(watch.drain(600'000ms)), (std::vector<std::string>{"task"}));
  EXPECT_TRUE(watch.drain(900'000ms).empty());
}

}  // namespace
}  // namespace watchdog::test
