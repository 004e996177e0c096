/// \file
/// How sure a share is that was counted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace watchdog {

/// Two shares. A plain value.
struct Interval {
  double low = 0;
  double high = 1;
};

/// The quantile of the normal distribution for an interval of 95 %.
inline constexpr double z_of_95_percent = 1.959963984540054;

/// Returns Wilson's interval for the share of which `hits` of `all` are a sample. Of none: 0 to 1.
/// REQUIRES: 0 <= hits <= all, and z > 0.
[[nodiscard]] inline Interval wilson(std::int64_t hits, std::int64_t all,
                                     double z = z_of_95_percent) noexcept {
  if (all == 0) return {};
  const auto n = static_cast<double>(all);
  const double share = static_cast<double>(hits) / n;
  const double middle = (share + z * z / (2 * n)) / (1 + z * z / n);
  const double half =
      z / (1 + z * z / n) * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {.low = std::max(0.0, middle - half), .high = std::min(1.0, middle + half)};
}

}  // namespace watchdog
