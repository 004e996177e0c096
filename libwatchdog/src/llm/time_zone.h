/// \file
/// The differences between local times and UTC, from the zone files of the machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/time.h"

namespace watchdog {

/// One time zone. A plain value.
class TimeZone {
 public:
  /// Reads a zone of the machine's database, like "Europe/Berlin". An empty name is the zone of
  /// this machine: `TZ`, else /etc/localtime, else UTC. Nothing: the machine does not know it.
  [[nodiscard]] static std::optional<TimeZone> named(std::string_view name);
  /// Reads the contents of a zone file (RFC 8536). Nothing: they are not one.
  [[nodiscard]] static std::optional<TimeZone> from(std::string_view bytes);

  /// Returns local time minus UTC. After the last change that the file lists, the file's rule for
  /// later years holds, else the latest change.
  [[nodiscard]] Millis offset(WallTime at) const noexcept;

  /// When the clocks change each year: on the `week`-th (5: the last) `weekday` of a month, at that
  /// local time. A plain value.
  struct YearDay {
    unsigned month = 1;
    unsigned week = 1;
    unsigned weekday = 0;  ///< 0: Sunday.
    Millis time{};
  };
  /// Both times of a year without an end. A plain value.
  struct Rule {
    Millis winter{};  ///< The offsets.
    Millis summer{};
    YearDay begin{};  ///< Of summer, in winter's local time,
    YearDay end{};    ///< and its end, in summer's.
  };

 private:
  struct Change {
    WallTime at{};
    Millis offset{};
  };
  Millis first_{};
  std::vector<Change> changes_;  ///< By time.
  std::optional<Rule> rule_;     ///< After the last change.
};

}  // namespace watchdog
