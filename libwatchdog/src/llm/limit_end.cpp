// Servers name the end of a limit in different ways: a pause, a moment (RFC 3339, seconds or
// milliseconds since 1970), a duration ("6m0s"), or a sentence. Each way has a reader of its own;
// two tables say which header or field holds what. A header counts only if its limit is used up,
// because servers send them with each response.
#include "llm/limit_end.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "llm/members.h"
#include "llm/retry_after.h"
#include "llm/time_zone.h"
#include "text/ascii.h"

namespace watchdog {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr days horizon{366};
constexpr std::size_t text_bytes_max = 8'192;

/// Servers' clocks differ from ours. A moment that has passed ends nothing.
std::optional<WallTime> within(std::optional<WallTime> end, WallTime now) {
  return end && *end > now && *end - now <= horizon ? end : std::nullopt;
}

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

std::optional<WallTime> after(double seconds_from_now, WallTime now) {
  constexpr double most = 400.0 * 86'400;
  if (seconds_from_now <= 0 || seconds_from_now > most) return std::nullopt;
  return now + Millis{static_cast<std::int64_t>(std::ceil(seconds_from_now * 1'000))};
}

/// Takes seconds or milliseconds since 1970, or seconds from now: they differ in size.
std::optional<WallTime> moment_from(double number, WallTime now) {
  constexpr double first_second = 1e9;
  constexpr double first_millisecond = 1e12;
  if (number >= 1e14) return std::nullopt;
  if (number >= first_millisecond) return WallTime{Millis{static_cast<std::int64_t>(number)}};
  if (number >= first_second) return WallTime{Millis{static_cast<std::int64_t>(number * 1'000)}};
  return after(number, now);
}

/// Reads "2h59m56.5s", "6 minutes 12 seconds", "2 days, 17 hours and 14 minutes".
std::optional<double> duration_in(std::string_view text) {
  static const re2::RE2 part(
      R"((?i)[ ,]*(?:and )?([0-9]+(?:\.[0-9]+)?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\b)");
  // "6m0s" has no border between its parts.
  static const re2::RE2 dense(R"(([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d))");
  double sum = 0;
  bool found = false;
  re2::StringPiece rest(text.data(), text.size());
  std::string number;
  std::string unit;
  while (re2::RE2::Consume(&rest, part, &number, &unit) ||
         re2::RE2::Consume(&rest, dense, &number, &unit)) {
    const auto value = number_in(number);
    if (!value) return std::nullopt;
    const auto word = lower_case(unit);
    const double scale = word.starts_with("ms") || word.starts_with("mil") ? 0.001
                         : word.front() == 's'                             ? 1
                         : word.front() == 'm'                             ? 60
                         : word.front() == 'h'                             ? 3'600
                                                                           : 86'400;
    sum += *value * scale;
    found = true;
  }
  return found ? std::optional(sum) : std::nullopt;
}

/// Returns 0 for an empty text.
int digits(const std::string& text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::optional<std::chrono::sys_days> date_from(int year, int month, int day) {
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  return date.ok() ? std::optional(std::chrono::sys_days{date}) : std::nullopt;
}

/// Reads RFC 3339 with a zone: without one it may be anybody's time.
std::optional<WallTime> timestamp_in(std::string_view text) {
  static const re2::RE2 pattern(
      R"((\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?: ?UTC|([Zz])|([+-])(\d\d):?(\d\d)))");
  std::array<std::string, 10> part;
  auto& [year, month, day, hour, minute, second, zulu, sign, zone_hours, zone_minutes] = part;
  if (!re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern, &year, &month,
                              &day, &hour, &minute, &second, &zulu, &sign, &zone_hours,
                              &zone_minutes))
    return std::nullopt;
  const auto date = date_from(digits(year), digits(month), digits(day));
  if (!date || digits(hour) > 23 || digits(minute) > 59 || digits(second) > 60) return std::nullopt;
  auto zone = hours{digits(zone_hours)} + minutes{digits(zone_minutes)};
  if (sign == "-") zone = -zone;
  return WallTime{*date + hours{digits(hour)} + minutes{digits(minute)} + seconds{digits(second)} -
                  zone};
}

// --- Headers ---------------------------------------------------------------------------------

using Header = std::function<std::string_view(std::string_view)>;

/// A limit, and the headers that say whether it is used up and when it ends.
struct LimitHeaders {
  std::string_view state;
  std::string_view used_up;  ///< The value of `state` that says so.
  std::string_view end;
};

// Anthropic's API reference ("Rate limits") and its clients; OpenAI's guide to rate limits, which
// Groq and Azure follow; codex' own client; OpenRouter's "Limits".
constexpr std::array<LimitHeaders, 10> limits{{
    {"anthropic-ratelimit-unified-status", "rejected", "anthropic-ratelimit-unified-reset"},
    {"anthropic-ratelimit-requests-remaining", "0", "anthropic-ratelimit-requests-reset"},
    {"anthropic-ratelimit-tokens-remaining", "0", "anthropic-ratelimit-tokens-reset"},
    {"anthropic-ratelimit-input-tokens-remaining", "0", "anthropic-ratelimit-input-tokens-reset"},
    {"anthropic-ratelimit-output-tokens-remaining", "0", "anthropic-ratelimit-output-tokens-reset"},
    {"x-codex-primary-used-percent", "100", "x-codex-primary-reset-at"},
    {"x-codex-secondary-used-percent", "100", "x-codex-secondary-reset-at"},
    {"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests"},
    {"x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens"},
    {"x-ratelimit-remaining", "0", "x-ratelimit-reset"},
}};

std::optional<WallTime> moment_in(std::string_view value, WallTime now) {
  if (const auto number = number_in(value)) return moment_from(*number, now);
  if (auto time = timestamp_in(value)) return time;
  const auto duration = duration_in(value);
  return duration ? after(*duration, now) : std::nullopt;
}

// --- Texts -----------------------------------------------------------------------------------

/// A time of day as people write it. `year` and `month` are 0 where the text has none; so is
/// `weekday`, which is 1 on Mondays.
struct ClockTime {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  std::string zone;
  int weekday = 0;
};

std::optional<ClockTime> clock_time_in(std::string_view text) {
  static const re2::RE2 pattern(
      R"((?i)(?:\bresets?|\bavailable|\btry again|\bretry)(?: again)?(?: at| on|:)* *)"
      R"((?:(mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?(?: at)? )?)"
      R"((?:(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?,?(?: (\d{4}),?)?(?: at)? )?)"
      R"((\d{1,2})(?::(\d\d))? ?([ap]\.?m\b\.?)?(?: (?:\(([^)]{1,64})\)|(UTC|GMT)\b))?)");
  std::array<std::string, 9> part;
  auto& [weekday, month, day, year, hour, minute, half, zone, utc] = part;
  if (!re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), pattern, &weekday, &month,
                              &day, &year, &hour, &minute, &half, &zone, &utc))
    return std::nullopt;
  if (half.empty() && minute.empty()) return std::nullopt;  // a number of something else
  ClockTime found{.year = digits(year),
                  .month = 0,
                  .day = digits(day),
                  .hour = digits(hour),
                  .minute = digits(minute),
                  .zone = zone.empty() ? utc : zone};
  if (!half.empty()) {
    if (found.hour < 1 || found.hour > 12) return std::nullopt;
    found.hour = found.hour % 12 + (lower_case(half).front() == 'p' ? 12 : 0);
  }
  if (found.hour > 23 || found.minute > 59) return std::nullopt;
  constexpr std::string_view months = "janfebmaraprmayjunjulaugsepoctnovdec";
  constexpr std::string_view weekdays = "montuewedthufrisatsun";
  if (!weekday.empty())
    found.weekday = static_cast<int>(weekdays.find(lower_case(weekday)) / 3) + 1;
  if (!month.empty()) found.month = static_cast<int>(months.find(lower_case(month)) / 3) + 1;
  return found;
}

/// Returns the first such moment after `now`.
std::optional<WallTime> next_of(const ClockTime& wanted, WallTime now) {
  const auto zone = TimeZone::named(wanted.zone);
  if (!zone) return std::nullopt;
  const auto utc = [&](std::chrono::sys_days date) {
    const WallTime local = date + hours{wanted.hour} + minutes{wanted.minute};
    // The offset before a change of the clocks, and the one after it.
    return local - zone->offset(local - zone->offset(local));
  };
  const auto today = std::chrono::floor<days>(now + zone->offset(now));
  if (wanted.month == 0) {
    const int today_is = static_cast<int>(std::chrono::weekday{today}.iso_encoding());
    const int ahead = wanted.weekday == 0 ? 0 : (wanted.weekday - today_is + 7) % 7;
    const auto first = utc(today + days{ahead});
    return first > now ? first : utc(today + days{ahead + (wanted.weekday == 0 ? 1 : 7)});
  }
  const int this_year = static_cast<int>(std::chrono::year_month_day{today}.year());
  for (const int year : {wanted.year == 0 ? this_year : wanted.year, this_year + 1}) {
    const auto date = date_from(year, wanted.month, wanted.day);
    if (!date) return std::nullopt;
    const auto end = utc(*date);
    if (end > now || wanted.year != 0) return end;
  }
  return std::nullopt;
}

std::optional<WallTime> next_midnight(const char* zone, WallTime now) {
  return next_of({.zone = zone}, now);
}

// --- Bodies ----------------------------------------------------------------------------------

std::optional<WallTime> moment_of(const nlohmann::json& value, WallTime now) {
  if (value.is_number()) return moment_from(value.get<double>(), now);
  if (value.is_string()) return moment_in(value.get_ref<const std::string&>(), now);
  return std::nullopt;
}

/// Gemini: a pause, or a limit of a day, which ends at midnight in California.
std::optional<WallTime> end_in_details(const nlohmann::json& details, WallTime now) {
  std::optional<WallTime> pause;
  for (const auto& detail : details) {
    if (const auto* delay = member(detail, "retryDelay")) pause = moment_of(*delay, now);
    const auto* violations = array_member(detail, "violations");
    if (violations == nullptr) continue;
    for (const auto& violation : *violations) {
      if (text_member(violation, "quotaId").find("PerDay") != std::string_view::npos)
        return next_midnight("America/Los_Angeles", now);
    }
  }
  return pause;
}

std::optional<WallTime> end_in_error(const nlohmann::json& body, WallTime now) {
  const auto* error =
      object_member(body.is_array() && !body.empty() ? body.front() : body, "error");
  if (error == nullptr) return std::nullopt;
  for (const auto* field : {"resets_at", "resets_in_seconds"}) {  // codex
    if (const auto* value = member(*error, field)) return moment_of(*value, now);
  }
  if (const auto* details = array_member(*error, "details")) {
    if (const auto end = end_in_details(*details, now)) return end;
  }
  const auto* metadata = object_member(*error, "metadata");  // OpenRouter
  const auto* headers = metadata == nullptr ? nullptr : object_member(*metadata, "headers");
  const auto* reset = headers == nullptr ? nullptr : member(*headers, "X-RateLimit-Reset");
  if (reset != nullptr) return moment_of(*reset, now);
  return limit_end_in_text(text_member(*error, "message"), now);
}

}  // namespace

std::optional<WallTime> limit_end_in_headers(const Header& header, WallTime now) {
  if (const auto pause = retry_after(header, now); pause && *pause > Millis{0})
    return within(now + *pause, now);
  std::optional<WallTime> last;
  for (const auto& limit : limits) {
    if (header(limit.state) != limit.used_up) continue;
    const auto end = within(moment_in(header(limit.end), now), now);
    if (end) last = std::max(last.value_or(*end), *end);
  }
  return last;
}

std::optional<WallTime> limit_end_in_body(std::string_view body, WallTime now) {
  const auto value = json_from(body);
  return value ? within(end_in_error(*value, now), now) : limit_end_in_text(body, now);
}

std::optional<WallTime> limit_end_in_text(std::string_view text, WallTime now) {
  static const re2::RE2 bar(R"(\|(\d{10})\b)");  // Claude Code's older versions
  static const re2::RE2 pause(
      R"((?i)(?:\btry again|\bretry|\bresets?|\bavailable)(?: again)?(?: in| after) ([0-9].*))");
  static const re2::RE2 moment(
      R"((?i)(?:\bresets?|\bavailable|\bagain|\buntil)\b[^0-9]{0,8}(\d{4}-.*))");
  const re2::StringPiece input(text.data(), std::min(text.size(), text_bytes_max));
  std::string found;
  if (re2::RE2::PartialMatch(input, bar, &found))
    return within(WallTime{seconds(std::stoll(found))}, now);
  if (re2::RE2::PartialMatch(input, moment, &found)) return within(timestamp_in(found), now);
  if (re2::RE2::PartialMatch(input, pause, &found)) {
    const auto duration = duration_in(found);
    return duration ? within(after(*duration, now), now) : std::nullopt;
  }
  const auto wanted = clock_time_in({input.data(), input.size()});
  return wanted ? within(next_of(*wanted, now), now) : std::nullopt;
}

}  // namespace watchdog
