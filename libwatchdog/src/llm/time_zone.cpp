// A zone file lists the changes of the clocks up to some year. Its last line has the rule for all
// later years, and new files list only what does not follow from that rule. Both are read with
// bounds, because anybody's TZ may name any file.
#include "llm/time_zone.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace watchdog {
namespace {

constexpr std::size_t file_bytes_max = 256U << 10U;
constexpr std::size_t header_bytes = 44;

/// Reads big-endian integers. After the end all are 0 and `failed` is set.
struct Reader {
  std::string_view bytes;
  bool failed = false;

  std::int64_t integer(std::size_t size) {
    if (bytes.size() < size) {
      failed = true;
      return 0;
    }
    std::uint64_t value = (static_cast<unsigned char>(bytes.front()) & 0x80U) != 0 ? ~0ULL : 0;
    for (std::size_t i = 0; i < size; ++i)
      value = (value << 8U) | static_cast<unsigned char>(bytes[i]);
    bytes.remove_prefix(size);
    return static_cast<std::int64_t>(value);
  }
  void skip(std::size_t size) {
    failed |= bytes.size() < size;
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
};

/// The counts that follow the 20 first bytes of a block.
struct Counts {
  std::size_t utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0;
};

std::optional<Counts> counts_in(Reader& in) {
  if (!in.bytes.starts_with("TZif")) return std::nullopt;
  in.skip(20);
  const auto count = [&] {
    return static_cast<std::size_t>(std::clamp<std::int64_t>(in.integer(4), 0, file_bytes_max));
  };
  const Counts counts{.utc = count(),
                      .standard = count(),
                      .leaps = count(),
                      .times = count(),
                      .types = count(),
                      .letters = count()};
  return in.failed ? std::nullopt : std::optional(counts);
}

bool is_name(std::string_view name) {
  return name.size() <= 64 && name.front() != '/' && name.find("..") == std::string_view::npos &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '+' || c == '/';
         });
}

/// Reads the rule at the end of a zone file: `PST8PDT,M3.2.0,M11.1.0`.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  /// Nothing: it has no summer time, or it counts days in another way, which no zone does.
  std::optional<TimeZone::Rule> read() {
    TimeZone::Rule rule;
    name();
    rule.winter = -time();
    name();
    rule.summer = failed_ || text_.starts_with(',') ? rule.winter + std::chrono::hours{1} : -time();
    rule.begin = day();
    rule.end = day();
    return failed_ || !text_.empty() ? std::nullopt : std::optional(rule);
  }

 private:
  bool skip(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void name() {
    const bool is_quoted = skip('<');
    const auto end = text_.find_first_of(is_quoted ? ">" : "+-0123456789,");
    failed_ |= end == std::string_view::npos || end == 0;
    text_.remove_prefix(std::min(end, text_.size()));
    if (is_quoted) skip('>');
  }
  unsigned number(unsigned least, unsigned most) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    failed_ |= error != std::errc{} || value < least || value > most;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return failed_ ? least : value;
  }
  Millis time() {
    const bool is_negative = skip('-');
    if (!is_negative) skip('+');
    Millis sum = std::chrono::hours(number(0, 167));
    if (skip(':')) sum += std::chrono::minutes(number(0, 59));
    if (skip(':')) sum += std::chrono::seconds(number(0, 59));
    return is_negative ? -sum : sum;
  }
  TimeZone::YearDay day() {
    failed_ |= !skip(',') || !skip('M');
    TimeZone::YearDay day;
    day.month = number(1, 12);
    failed_ |= !skip('.');
    day.week = number(1, 5);
    failed_ |= !skip('.');
    day.weekday = number(0, 6);
    day.time = skip('/') ? time() : std::chrono::hours{2};
    return day;
  }

  std::string_view text_;
  bool failed_ = false;
};

WallTime in_year(const TimeZone::YearDay& day, std::chrono::year year) {
  const auto month = year / std::chrono::month{day.month};
  const std::chrono::weekday weekday{day.weekday};
  const std::chrono::sys_days date = day.week == 5
                                         ? std::chrono::sys_days{month / weekday[std::chrono::last]}
                                         : std::chrono::sys_days{month / weekday[day.week]};
  return date + day.time;
}

Millis offset_by(const TimeZone::Rule& rule, WallTime at) {
  const auto local = std::chrono::floor<std::chrono::days>(at + rule.winter);
  const auto year = std::chrono::year_month_day{local}.year();
  const auto begin = in_year(rule.begin, year) - rule.winter;
  const auto end = in_year(rule.end, year) - rule.summer;
  // South of the equator summer ends first.
  const bool is_summer = begin < end ? begin <= at && at < end : at < end || begin <= at;
  return is_summer ? rule.summer : rule.winter;
}

}  // namespace

std::optional<TimeZone> TimeZone::from(std::string_view bytes) {
  if (bytes.size() > file_bytes_max) return std::nullopt;
  Reader in{bytes};
  auto counts = counts_in(in);
  if (!counts) return std::nullopt;
  std::size_t time_bytes = 4;
  if (bytes.size() > header_bytes && bytes[4] >= '2') {  // a second block has times of 8 bytes
    in.skip(counts->times * 5 + counts->types * 6 + counts->letters + counts->leaps * 8 +
            counts->standard + counts->utc);
    counts = counts_in(in);
    if (!counts) return std::nullopt;
    time_bytes = 8;
  }
  std::vector<std::int64_t> times(std::min(counts->times, in.bytes.size()));
  for (auto& time : times) time = in.integer(time_bytes);
  std::vector<std::int64_t> kinds(times.size());
  for (auto& kind : kinds) kind = in.integer(1);
  std::vector<Millis> offsets(std::min(counts->types, in.bytes.size()));
  for (auto& offset : offsets) {
    offset = std::chrono::seconds(in.integer(4));
    in.skip(2);
  }
  const auto leap_bytes = time_bytes + 4;
  in.skip(counts->letters + counts->leaps * leap_bytes + counts->standard + counts->utc);
  constexpr Millis day{86'400'000};
  const auto is_valid = [&](Millis offset) { return std::chrono::abs(offset) <= 2 * day; };
  if (in.failed || offsets.empty() || !std::ranges::all_of(offsets, is_valid)) return std::nullopt;
  TimeZone zone;
  zone.first_ = offsets.front();
  constexpr std::int64_t seconds_max = 1LL << 40U;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto kind = static_cast<std::size_t>(kinds[i]);
    if (kind >= offsets.size()) return std::nullopt;
    const std::chrono::seconds at(std::clamp(times[i], -seconds_max, seconds_max));
    zone.changes_.push_back({WallTime(at), offsets[kind]});
  }
  if (!std::ranges::is_sorted(zone.changes_, {}, &Change::at)) return std::nullopt;
  if (auto text = in.bytes; time_bytes == 8 && text.starts_with('\n')) {
    text.remove_prefix(1);
    zone.rule_ = RuleReader(text.substr(0, text.find('\n'))).read();
  }
  return zone;
}

std::optional<TimeZone> TimeZone::named(std::string_view name) {
  std::string path = "/etc/localtime";
  bool is_own = name.empty();
  if (is_own) {
    const char* chosen = std::getenv("TZ");  // NOLINT(concurrency-mt-unsafe): nobody sets it
    if (chosen != nullptr) name = chosen;
    if (name.starts_with(':')) name.remove_prefix(1);
  }
  if (name == "UTC" || name == "GMT") return TimeZone();
  if (!name.empty()) {
    if (!is_name(name)) return std::nullopt;
    path = "/usr/share/zoneinfo/" + std::string(name);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return is_own && name.empty() ? std::optional(TimeZone()) : std::nullopt;
  std::string bytes(file_bytes_max + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return from(bytes);
}

Millis TimeZone::offset(WallTime at) const noexcept {
  const auto next = std::ranges::upper_bound(changes_, at, {}, &Change::at);
  if (next == changes_.end() && rule_) return offset_by(*rule_, at);
  return next == changes_.begin() ? first_ : std::prev(next)->offset;
}

}  // namespace watchdog
