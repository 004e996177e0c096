#include "ingest/time_text.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

std::optional<std::int64_t> ms_of(std::string_view text) {
  const auto moment = time_in_text(text);
  return moment ? std::optional(std::int64_t{moment->time_since_epoch().count()}) : std::nullopt;
}

TEST(TimeText, reads_each_form) {
  // 2026-11-22T10:34:12Z
  constexpr std::int64_t second = 1'795'343'652'000;
  constexpr std::int64_t hour = 3'600'000;
  const std::pair<const char*, std::int64_t> rows[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2024-02-29T00:00:00Z", 1'709'164'800'000},
      {"2026-11-22T10:34:12", second},
      {"2026-11-22 10:34:12", second},
      {"2026-11-22T10:34:12Z", second},
      {"2026-11-22T10:34:12.2Z", second + 200},
      {"2026-11-22T10:34:12.204Z", second + 204},
      {"2026-11-22T10:34:12.204999", second + 204},
      {"2026-11-22T10:34:12.", second},
      {"2026-11-22T10:34:12+02:00", second - 2 * hour},
      {"2026-11-22T10:34:12-0530", second + 5 * hour + hour / 2},
      {"2026-11-22 10:34:12.204+01", second + 204 - hour},
      {"2026-11-22T10:34:12+xx:yy", second},
  };
  for (const auto& [text, ms] : rows) EXPECT_EQ(ms_of(text), ms) << text;
}

TEST(TimeText, of_another_text_is_nothing) {
  for (const auto* text : {"", "now", "2026-11-22", "2026-11-22T10:34", "2026-11-22_10:34:12",
                           "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-10T00:00:00Z",
                           "2026-11-31T00:00:00Z", "x026-11-22T10:34:12Z", "1795343652000"})
    EXPECT_EQ(ms_of(text), std::nullopt) << text;
}

TEST(TimeText, has_its_length_as_its_bound) {
  constexpr std::string_view whole = "2026-11-22T10:34:12.204+02:00";
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    // Digits follow the view. A function that reads them finds another time.
    const std::string text = std::string(whole.substr(0, length)) + "99";
    EXPECT_EQ(ms_of(std::string_view(text).substr(0, length)), ms_of(whole.substr(0, length)));
  }
}

}  // namespace
}  // namespace watchdog::monitor
