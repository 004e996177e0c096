/// \file
/// The one digest: XXH3, 64 bits (https://xxhash.com).
#pragma once

#include <cstdint>
#include <string_view>

namespace watchdog {

/// Thread-safe.
[[nodiscard]] std::uint64_t digest_of(std::string_view bytes) noexcept;

/// One digest of two; their order matters.
[[nodiscard]] constexpr std::uint64_t combined(std::uint64_t a, std::uint64_t b) noexcept {
  // The finishing steps of SplitMix64 (Steele, Lea and Flood, 2014).
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL + b;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

}  // namespace watchdog
