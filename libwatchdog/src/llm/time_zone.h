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

  /// Returns local time minus UTC. After the last change that the file lists, it is the latest one.
  [[nodiscard]] Millis offset(WallTime at) const noexcept;

 private:
  struct Change {
    WallTime at{};
    Millis offset{};
  };
  Millis first_{};
  std::vector<Change> changes_;  ///< By time.
};

}  // namespace watchdog
