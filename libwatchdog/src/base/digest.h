/// \file
/// The one digest: XXH3, 64 bits (https://xxhash.com).
#pragma once

#include <cstdint>
#include <string_view>

namespace watchdog {

[[nodiscard]] std::uint64_t digest_of(std::string_view bytes) noexcept;

}  // namespace watchdog
