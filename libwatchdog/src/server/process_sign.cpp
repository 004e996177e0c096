#include "server/process_sign.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace watchdog {

ProcessSign process_sign(const ServerSample& before, const ServerSample& now,
                         const HangThresholds& limits) {
  ProcessSign sign;
  if (!now.cpu || !before.cpu) return sign;
  const auto elapsed = std::max(now.at - before.at, Millis{1});
  const auto used = *now.cpu - *before.cpu;
  sign.cores = static_cast<double>(used.count()) / static_cast<double>(elapsed.count());
  if (now.io_bytes && before.io_bytes) sign.growth = *now.io_bytes - *before.io_bytes;
  if (now.memory_bytes && before.memory_bytes)
    sign.growth = std::max(sign.growth, *now.memory_bytes - *before.memory_bytes);
  sign.gpu_percent = now.gpu_percent.value_or(0);
  const bool is_busy = used < Millis{}  // a part of it ended
                       || sign.cores >= limits.cpu_idle || sign.loads() ||
                       sign.gpu_percent > limits.gpu_idle_percent;
  sign.does = is_busy ? ProcessSign::busy : ProcessSign::idle;
  return sign;
}

std::string in_words(const ProcessSign& sign) {
  if (sign.does == ProcessSign::unseen) return "its process cannot be seen";
  if (sign.does == ProcessSign::idle) return "its process does nothing";
  if (sign.cores >= 0.05) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f", sign.cores);
    return "its process computes on " + std::string(text.data()) + " cores";
  }
  if (sign.loads()) return "its process loads data";
  if (sign.gpu_percent > 0) return "its GPU is busy by " + std::to_string(sign.gpu_percent) + " %";
  return "its process does a little";
}

}  // namespace watchdog
