/// \file
/// The table between an enumerator and its name in JSON, SQL and on the screen.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>

namespace watchdog {

/// Specialised beside each enum that has names: `all` lists them in the order of the enumerators.
template <class Enum>
struct Names;

/// True if the enum has an enumerator of this value. Compilers spell such a value by its name, and
/// any other as a cast: `Kind::end`, but `(Kind)27`.
template <class Enum, Enum value>
[[nodiscard]] constexpr bool is_enumerator() {
  const std::string_view spelled = __PRETTY_FUNCTION__;
  const auto at = spelled.find("value = ");
  return at != std::string_view::npos && spelled[at + 8] != '(';
}

/// True if the names are as many as the enumerators: the last has a name, and no further one is.
template <class Enum>
[[nodiscard]] constexpr bool all_are_named() {
  constexpr auto count = std::size(Names<Enum>::all);
  return is_enumerator<Enum, static_cast<Enum>(count - 1)>() &&
         !is_enumerator<Enum, static_cast<Enum>(count)>();
}

/// The name of an enumerator. REQUIRES: `value` is one of the enum's enumerators.
template <class Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  static_assert(all_are_named<Enum>(), "the names and the enumerators are not equally many");
  return Names<Enum>::all[static_cast<std::size_t>(value)];
}

/// Returns the enumerator of a name, or nothing.
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
