#include "llm/retry_after.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace watchdog {
namespace {

/// No server means more than a year, and nothing overflows below it.
constexpr std::int64_t seconds_max = 366LL * 24 * 3600;

std::optional<int> digits(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// A count with or without a fraction, which is left out.
std::optional<std::int64_t> count_from(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size() || *end == '.';
  if (error != std::errc{} || !whole || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::optional<WallTime> http_date_from(std::string_view text) {
  static constexpr std::array<std::string_view, 12> months{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || !text.ends_with(" GMT"))
    return std::nullopt;
  const auto* const month = std::ranges::find(months, text.substr(8, 3));
  const auto day = digits(text.substr(5, 2));
  const auto year = digits(text.substr(12, 4));
  const auto hour = digits(text.substr(17, 2));
  const auto minute = digits(text.substr(20, 2));
  const auto second = digits(text.substr(23, 2));
  if (month == months.end() || !day || !year || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year{*year},
      std::chrono::month{static_cast<unsigned>(month - months.begin()) + 1},
      std::chrono::day{static_cast<unsigned>(*day)}};
  if (!date.ok() || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  return WallTime{std::chrono::sys_days{date} + std::chrono::hours{*hour} +
                  std::chrono::minutes{*minute} + std::chrono::seconds{*second}};
}

std::optional<Millis> retry_after(const std::function<std::string_view(std::string_view)>& header,
                                  WallTime now) {
  if (const auto ms = count_from(header("retry-after-ms")))
    return Millis{std::min(*ms, seconds_max * 1000)};
  const auto wanted = header("retry-after");
  if (const auto seconds = count_from(wanted))
    return Millis{std::min(*seconds, seconds_max) * 1000};
  const auto date = http_date_from(wanted);
  if (!date) return std::nullopt;
  const WallTime since = http_date_from(header("date")).value_or(now);
  return std::clamp<Millis>(*date - since, Millis{0}, Millis{seconds_max * 1000});
}

}  // namespace watchdog
