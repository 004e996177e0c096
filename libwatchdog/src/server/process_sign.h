/// \file
/// The activity of a server's process between two samples.
#pragma once

#include <cstdint>
#include <string>

#include "server/server_evidence.h"

namespace watchdog {

/// A plain value.
struct ProcessSign {
  enum Does : std::uint8_t { unseen, idle, busy };
  /// A process that reads or allocates this much between two samples is active.
  static constexpr std::int64_t growth_min = 1 << 20;

  Does does = unseen;
  double cores = 0;         ///< That it used.
  std::int64_t growth = 0;  ///< Bytes that it read from disks, or took as memory.
  int gpu_percent = 0;

  [[nodiscard]] bool loads() const noexcept { return growth >= growth_min; }
};

[[nodiscard]] ProcessSign process_sign(const ServerSample& before, const ServerSample& now,
                                       const HangThresholds& limits);

/// `its process …`; how long an idle one has been so is not known here.
[[nodiscard]] std::string in_words(const ProcessSign& sign);

}  // namespace watchdog
