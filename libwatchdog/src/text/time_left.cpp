#include "text/time_left.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <optional>

namespace watchdog {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;

constexpr std::string_view shape = "2026-11-23 21:00 UTC";

/// Returns the moment that minute_of() writes like this.
std::optional<WallTime> minute_from(const std::string& text) {
  int year = 0;
  unsigned month = 0, day = 0;
  int hour = 0, minute = 0;
  const auto read =
      std::sscanf(text.c_str(), "%4d-%2u-%2u %2d:%2d", &year, &month, &day, &hour, &minute);
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{month},
                                         std::chrono::day{day}};
  if (read != 5 || !date.ok()) return std::nullopt;
  const WallTime moment = std::chrono::sys_days{date} + hours{hour} + minutes{minute};
  return minute_of(moment) == text ? std::optional(moment) : std::nullopt;
}

}  // namespace

std::string minute_of(WallTime time) {
  const auto minute = std::chrono::ceil<minutes>(time);
  const auto day = std::chrono::floor<days>(minute);
  const std::chrono::year_month_day date{day};
  const auto within = (minute - day).count();
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d UTC",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(within / 60),
                static_cast<int>(within % 60));
  return text.data();
}

std::string left_in_words(Millis left) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(left).count();
  if (seconds < 60) return std::to_string(seconds) + " s";
  const auto whole = std::chrono::ceil<minutes>(left).count();
  const auto two = [](std::int64_t number, std::int64_t part, const char* large,
                      const char* small) {
    const auto rest = number % part;
    return std::to_string(number / part) + large +
           (rest == 0 ? "" : " " + std::to_string(rest) + small);
  };
  if (whole < 60) return std::to_string(whole) + " min";
  if (whole < 48 * 60) return two(whole, 60, " h", " min");
  return two((whole + 59) / 60, 24, " d", " h");
}

std::string with_time_left(std::string_view text, WallTime now,
                           const std::function<std::string(WallTime)>& moment) {
  constexpr std::string_view word = "until ";
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const auto from = at + word.size();
    const auto end = minute_from(std::string(text.substr(from, shape.size())));
    if (!end) continue;
    if (*end <= now) break;
    // The sentence has the minute alone, so a count of seconds would be wrong.
    const auto left = *end - now < minutes{1} ? "less than 1 min" : left_in_words(*end - now);
    return std::string(text.substr(0, from)) + moment(*end) + " (in " + left + ")" +
           std::string(text.substr(from + shape.size()));
  }
  return std::string(text);
}

}  // namespace watchdog
