/// \file
/// The one table between an enumerator and its name in JSON, SQL and on the screen.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace watchdog {

/// Specialised beside each enum that has names: `all` lists them in the order of the enumerators.
template <class Enum>
struct Names;

/// The name of an enumerator. REQUIRES: `value` is one of the enum's enumerators.
template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  return Names<Enum>::all[static_cast<std::size_t>(value)];
}

/// The enumerator of a name, or nothing where no enumerator is called so.
template <class Enum>
[[nodiscard]] constexpr std::optional<Enum> named(std::string_view name) {
  std::size_t at = 0;
  for (const auto candidate : Names<Enum>::all) {
    if (candidate == name) return static_cast<Enum>(at);
    ++at;
  }
  return std::nullopt;
}

}  // namespace watchdog
