#include "text/time_left.h"

#include <gtest/gtest.h>

namespace watchdog {
namespace {

using namespace std::chrono_literals;

constexpr WallTime now{std::chrono::sys_days{std::chrono::year{2026} / 11 / 27} + 18h + 46min};

TEST(TimeLeft, a_limit_is_not_over_before_its_minute) {
  EXPECT_EQ(minute_of(now), "2026-11-27 18:46 UTC");
  EXPECT_EQ(minute_of(now + 1ms), "2026-11-27 18:47 UTC");
}

TEST(TimeLeft, has_two_units_at_most) {
  const std::pair<Millis, const char*> rows[] = {
      {1ms, "1 s"},   {59s, "59 s"},          {59s + 1ms, "1 min"},
      {60s, "1 min"}, {61s, "2 min"},         {59min, "59 min"},
      {60min, "1 h"}, {134min, "2 h 14 min"}, {47h + 59min, "47 h 59 min"},
      {48h, "2 d"},   {76h - 1ms, "3 d 4 h"}, {24h * 365, "365 d"}};
  for (const auto& [left, words] : rows) EXPECT_EQ(left_in_words(left), words) << left.count();
}

TEST(TimeLeft, is_added_to_the_moment_that_a_sentence_names) {
  EXPECT_EQ(with_time_left("Waits for quota of anthropic until 2026-11-27 21:00 UTC: used up", now),
            "Waits for quota of anthropic until 2026-11-27 21:00 UTC (in 2 h 14 min): used up");
  EXPECT_EQ(with_time_left("until 2026-11-27 21:00 UTC", now, [](WallTime) { return "nine"; }),
            "until nine (in 2 h 14 min)");
}

TEST(TimeLeft, counts_no_seconds_because_the_moment_has_none) {
  for (const auto& [passed, words] :
       {std::pair{55s, "less than 1 min"}, {1s, "less than 1 min"}, {0s, "1 min"}})
    EXPECT_EQ(with_time_left("until 2026-11-27 18:47 UTC", now + passed),
              "until 2026-11-27 18:47 UTC (in " + std::string(words) + ")");
}

TEST(TimeLeft, a_text_without_a_moment_to_come_stays) {
  for (const auto* text :
       {"", "until", "until ", "until 2026-11-27 18:46 UTC", "Waits for quota until tomorrow",
        "until 2026-13-27 21:00 UTC", "until 2026-11-31 21:00 UTC", "until 2026-11-27 21:60 UTC",
        "until 2026-11-27 21:00 CET", "until 2026-11-27 21:00 UT", "until \xff"})
    EXPECT_EQ(with_time_left(text, now), text);
  EXPECT_EQ(with_time_left("until then, until 2026-11-27 21:00 UTC", now),
            "until then, until 2026-11-27 21:00 UTC (in 2 h 14 min)");
}

}  // namespace
}  // namespace watchdog
