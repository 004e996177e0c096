#include <algorithm>

#include "watchdog/history.h"

namespace watchdog {

void GapWindow::add(Millis gap, std::int64_t count) {
  const auto ms = static_cast<std::int32_t>(std::clamp<std::int64_t>(gap.count(), 0, INT32_MAX));
  const auto put = [&] { buckets[at] = std::max(buckets[at], ms); };
  put();
  const std::int64_t total = filled + count;
  for (auto turns = std::min<std::int64_t>(total / per_bucket, bucket_count); turns > 0; --turns) {
    at = static_cast<std::uint8_t>((at + 1U) % bucket_count);
    buckets[at] = 0;
  }
  filled = static_cast<std::uint8_t>(total % per_bucket);
  if (count > 1) put();  // where in the row the gap was is not known: assume its end
}

Millis GapWindow::longest() const noexcept {
  return Millis{*std::max_element(buckets.begin(), buckets.end())};
}

}  // namespace watchdog
