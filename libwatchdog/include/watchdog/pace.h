/// \file
/// How long a session usually takes for what it does, and what is long for it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "watchdog/policy.h"
#include "watchdog/time.h"

namespace watchdog {

/// From when on an activity is slow, and suspect.
struct PaceBounds {
  Millis usual{};  ///< The median that is expected.
  Millis slow{};
  Millis suspect{};
};

/// Intervals between changes, kept apart by activity: a phase or a tool. Their logarithms are taken
/// as normally distributed: intervals of agents spread over magnitudes. Eight pseudo-samples of the
/// policy's usual interval stand for a session that is not known yet; beyond 200 samples old ones
/// fade. A plain value of at most 1 KiB.
class Pace {
 public:
  static constexpr std::size_t kinds_max = 32;

  /// The name that a phase or a tool has here.
  [[nodiscard]] static std::uint32_t kind_of_phase(std::string_view phase) noexcept;
  [[nodiscard]] static std::uint32_t kind_of_tool(std::string_view tool) noexcept;

  void add(std::uint32_t kind, Millis interval);
  [[nodiscard]] PaceBounds bounds(std::uint32_t kind, const Policy& policy) const noexcept;
  /// How surprising it is that an activity takes so long already, as the bounds see it: −log10 of
  /// the share of intervals that are longer. 0 … `phi_max`, finite whatever went in.
  [[nodiscard]] double phi(std::uint32_t kind, Millis elapsed, const Policy& policy) const noexcept;
  static constexpr double phi_max = 99;

  /// Mean and sum of squared deviations of ln(seconds), in Welford's form.
  struct Samples {
    std::uint32_t kind = 0;
    float count = 0;
    float mean = 0;
    float deviations = 0;
  };
  /// The last one is for all kinds that found no room.
  std::vector<Samples> samples;

 private:
  /// What is expected of ln(seconds).
  struct Expectation {
    double centre = 0;
    double spread = 0;
    double usual = 0;      ///< The policy's own.
    bool quicker = false;  ///< Than that, by its samples alone.
  };
  [[nodiscard]] Expectation expected(std::uint32_t kind, const Policy& policy) const noexcept;
};

}  // namespace watchdog
