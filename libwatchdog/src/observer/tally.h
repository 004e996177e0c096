/// \file
/// How many sessions have which health and state.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "judge/attention.h"
#include "watchdog/health.h"

namespace watchdog {

/// Numbers of sessions, by lifecycle (those before `completed`), health and state.
struct Tally {
  std::array<std::array<std::int64_t, std::size(Names<HealthKind>::all)>,
             static_cast<std::size_t>(Lifecycle::completed)>
      healths{};
  std::array<std::int64_t, std::size(Names<SessionState>::all)> states{};
  std::array<std::int64_t, std::size(Names<Attention>::all)> attentions{};
  std::map<std::int64_t, std::int64_t>
      ready_by_hour{};                 ///< Of those that are ready; hours of 1970.
  std::int64_t blocked_on_people = 0;  ///< Of those that wait and are blocked.

  /// Numbers by attention at `wall`: what was ready for `end_fresh_for` rests.
  [[nodiscard]] std::array<std::int64_t, std::size(Names<Attention>::all)> attentions_at(
      WallTime wall) const;

  /// The numbers to which one session belongs.
  struct Part {
    Lifecycle lifecycle{};
    HealthKind health{};
    SessionState state{};
    Attention attention{};
    std::int64_t ready_hour = 0;
    bool is_blocked_on_people = false;
    friend bool operator==(const Part&, const Part&) = default;
  };
  /// Nothing: it ended.
  [[nodiscard]] static std::optional<Part> part_of(const Case& judged, Family family);

  void add(const Case& judged, Family family = Family::root);
  void add(const Tally& other);
  void add(const Part& part, std::int64_t count = 1);
};

/// As monitors that share a database show it to each other.
[[nodiscard]] std::string to_json(const Tally& tally);
[[nodiscard]] std::optional<Tally> tally_from_json(const std::string& text);

}  // namespace watchdog
