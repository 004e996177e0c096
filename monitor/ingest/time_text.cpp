#include "ingest/time_text.h"

#include <charconv>
#include <chrono>

namespace watchdog::monitor {
namespace {

bool has_form(std::string_view text, std::string_view form) {
  if (text.size() < form.size()) return false;
  for (std::size_t at = 0; at < form.size(); ++at) {
    const bool is_digit = text[at] >= '0' && text[at] <= '9';
    if (form[at] == 'd' ? !is_digit : text[at] != form[at]) return false;
  }
  return true;
}

int number_at(std::string_view text, std::size_t at, std::size_t length) {
  int value = 0;
  std::from_chars(text.data() + at, text.data() + at + length, value);
  return value;
}

/// The distance of the zone from UTC.
Millis zone_in(std::string_view text) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return Millis{0};
  const auto digits = text.substr(1);
  const bool has_colon = has_form(digits, "dd:dd");
  if (!has_colon && !has_form(digits, "dd")) return Millis{0};
  Millis distance = std::chrono::hours(number_at(digits, 0, 2));
  if (has_colon) distance += std::chrono::minutes(number_at(digits, 3, 2));
  if (has_form(digits, "dddd")) distance += std::chrono::minutes(number_at(digits, 2, 2));
  return text[0] == '+' ? distance : -distance;
}

}  // namespace

std::optional<WallTime> time_in_text(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-ddTdd:dd:dd";
  if (!has_form(text, form) && !has_form(text, "dddd-dd-dd dd:dd:dd")) return std::nullopt;
  const std::chrono::year_month_day date{
      std::chrono::year(number_at(text, 0, 4)),
      std::chrono::month(static_cast<unsigned>(number_at(text, 5, 2))),
      std::chrono::day(static_cast<unsigned>(number_at(text, 8, 2)))};
  if (!date.ok()) return std::nullopt;
  Millis rest = std::chrono::hours(number_at(text, 11, 2)) +
                std::chrono::minutes(number_at(text, 14, 2)) +
                std::chrono::seconds(number_at(text, 17, 2));
  auto at = form.size();
  if (at < text.size() && text[at] == '.') {
    auto place = Millis{100};
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      rest += place * (text[at] - '0');
      place /= 10;
    }
  }
  return WallTime{std::chrono::sys_days{date}} + rest - zone_in(text.substr(at));
}

}  // namespace watchdog::monitor
