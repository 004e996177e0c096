/// \file
/// What a server's process did between two looks.
#pragma once

#include <cstdint>
#include <string>

#include "watchdog/server_evidence.h"

namespace watchdog {

/// A plain value.
struct ProcessSign {
  enum Does : std::uint8_t { unseen, idle, busy };
  /// A process that reads or takes so many bytes between two looks does something.
  static constexpr std::int64_t growth_min = 1 << 20;

  Does does = unseen;
  double cores = 0;         ///< That it used.
  std::int64_t growth = 0;  ///< Bytes that it read from disks, or took as memory.
  int gpu_percent = 0;

  [[nodiscard]] bool loads() const noexcept { return growth >= growth_min; }
};

[[nodiscard]] ProcessSign process_sign(const ServerSight& before, const ServerSight& now,
                                       const EvidencePatience& patience);

/// `its process …`; how long an idle one has been so is not known here.
[[nodiscard]] std::string in_words(const ProcessSign& sign);

}  // namespace watchdog
