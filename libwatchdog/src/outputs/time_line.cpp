#include "outputs/time_line.h"

#include <algorithm>
#include <chrono>
#include <sstream>

namespace watchdog {

TimeLine TimeLine::continued(const std::optional<TimeLine>& kept, const Clock& clock) {
  const auto boot = clock.boot_id();
  if (kept && kept->boot == boot) return *kept;
  TimeLine line{.boot = boot, .offset = {}, .last = clock.wall(), .leap = {}};
  if (kept) {
    line.last = std::max(line.last, kept->last);
    line.leap = line.last - kept->last > differ_max ? line.last : kept->leap;
  }
  line.offset =
      std::chrono::duration_cast<Millis>(line.last.time_since_epoch()) - clock.since_boot();
  return line;
}

std::optional<TimeLine> TimeLine::from(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string boot;
  Millis::rep offset = 0;
  Millis::rep last = 0;
  Millis::rep leap = 0;
  if (!(in >> boot >> offset >> last >> leap)) return std::nullopt;
  return TimeLine{.boot = std::move(boot),
                  .offset = Millis{offset},
                  .last = WallTime{Millis{last}},
                  .leap = WallTime{Millis{leap}}};
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
  return std::chrono::abs(clock.wall() - line) <= differ_max &&
         (leap == WallTime{} || line - leap > differ_max);
}

}  // namespace watchdog
