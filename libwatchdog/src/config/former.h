/// \file
/// Keys that were settings before 0.2. They are accepted, reported, and change nothing.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/table.h"

namespace watchdog {

struct FormerKey {
  std::string_view key;  ///< `*` stands for a name.
  std::string_view now;  ///< The value that holds instead, or the setting to use.
  /// Not null: tests change it by `internal_times`, to make pauses short.
  Field (*field)(Settings& settings, const KeyPath& path) = nullptr;
};

/// A variable of this project's own tests, not a setting: `KEY=VALUE,…` of former keys that have a
/// field. It may change or go at any time.
inline constexpr std::string_view internal_times = "WATCHDOG_INTERNAL_TIMES";

[[nodiscard]] std::span<const FormerKey> former_keys() noexcept;
/// Returns the former key of a path in a file, or of its variable; null: there is none.
[[nodiscard]] const FormerKey* find_former(const KeyPath& path);
[[nodiscard]] const FormerKey* find_former_variable(std::string_view name);

}  // namespace watchdog
