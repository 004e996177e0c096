/// \file
/// How long a session usually takes for an activity, and what is long for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "watchdog/policy.h"
#include "watchdog/time.h"

namespace watchdog {

/// The bounds from which an activity is slow, and suspect.
struct PaceBounds {
  Millis usual{};  ///< The expected median.
  Millis slow{};
  Millis suspect{};
  /// The median of its own intervals alone; empty: there are fewer than `pace_history_min`.
  std::optional<Millis> own{};
};
inline constexpr int pace_history_min = 3;

/// Intervals between changes, for each activity: a phase or a tool. Their logarithms are treated as
/// normally distributed, because intervals of agents spread over magnitudes. Eight pseudo-samples
/// of the policy's usual interval represent an unknown session; beyond 200 samples old ones fade. A
/// plain value of at most 1 KiB.
class Pace {
 public:
  static constexpr std::size_t kinds_max = 32;

  /// Returns the key of a phase or a tool.
  [[nodiscard]] static std::uint32_t kind_of_phase(std::string_view phase) noexcept;
  [[nodiscard]] static std::uint32_t kind_of_tool(std::string_view tool) noexcept;

  void add(std::uint32_t kind, Millis interval);
  [[nodiscard]] PaceBounds bounds(std::uint32_t kind, const Policy& policy) const noexcept;
  /// Returns how surprising the duration of an activity is by the same bounds: −log10 of the share
  /// of longer intervals. 0 … `phi_max`, always finite.
  [[nodiscard]] double phi(std::uint32_t kind, Millis elapsed, const Policy& policy) const noexcept;
  static constexpr double phi_max = 99;

  /// Mean and sum of squared deviations of ln(seconds), in Welford's form.
  struct Samples {
    std::uint32_t kind = 0;
    float count = 0;
    float mean = 0;
    float deviations = 0;
  };
  /// The last one is for all kinds beyond the limit.
  std::vector<Samples> samples;

 private:
  /// The expected ln(seconds).
  struct Expectation {
    double centre = 0;
    double spread = 0;
    double usual = 0;      ///< The policy's own.
    bool quicker = false;  ///< Than that, by its samples alone.
  };
  [[nodiscard]] Expectation expected(std::uint32_t kind, const Policy& policy) const noexcept;
};

}  // namespace watchdog
