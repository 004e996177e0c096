/// \file
/// Names with `*` for any characters.
#pragma once

#include <string_view>

namespace watchdog {

/// Returns whether the pattern, in which `*` stands for any characters or none, matches the whole
/// name. Pure; its time is bounded by the product of both lengths.
[[nodiscard]] bool matches_wildcard(std::string_view pattern, std::string_view name) noexcept;

}  // namespace watchdog
