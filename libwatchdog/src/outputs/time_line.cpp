#include "outputs/time_line.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <utility>

namespace watchdog {
namespace {

/// In the year 11,000. Below it no sum overflows.
constexpr Millis::rep ms_max = 300'000'000'000'000;

}  // namespace

TimeLine TimeLine::continued(const std::optional<TimeLine>& kept, const Clock& clock) {
  const auto boot = clock.boot_id();
  if (kept && kept->boot == boot) return *kept;
  TimeLine line{.boot = boot, .offset = {}, .last = clock.wall(), .leap = {}};
  if (kept) line.last = std::max(line.last, kept->last);
  const bool leaps = !kept || line.last - kept->last > differ_max;
  line.leap = leaps ? line.last : kept->leap;
  line.offset =
      std::chrono::duration_cast<Millis>(line.last.time_since_epoch()) - clock.since_boot();
  return line;
}

std::optional<TimeLine> TimeLine::from(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string boot;
  std::array<Millis::rep, 3> numbers{};
  if (!(in >> boot >> numbers[0] >> numbers[1] >> numbers[2])) return std::nullopt;
  if (!std::ranges::all_of(numbers, [](auto ms) { return ms >= -ms_max && ms <= ms_max; }))
    return std::nullopt;
  return TimeLine{.boot = std::move(boot),
                  .offset = Millis{numbers[0]},
                  .last = WallTime{Millis{numbers[1]}},
                  .leap = WallTime{Millis{numbers[2]}}};
}

std::string TimeLine::text() const {
  std::ostringstream out;
  out << boot << ' ' << offset.count() << ' ' << last.time_since_epoch().count() << ' '
      << leap.time_since_epoch().count() << '\n';
  return out.str();
}

WallTime TimeLine::now(const Clock& clock) const noexcept {
  return std::max(last, WallTime{clock.since_boot() + offset});
}

bool TimeLine::may_age(const Clock& clock) const noexcept {
  const auto line = now(clock);
  return std::chrono::abs(clock.wall() - line) <= differ_max && line - leap > differ_max;
}

}  // namespace watchdog
