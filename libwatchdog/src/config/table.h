/// \file
/// The table of settings: everything else is made from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/field.h"
#include "watchdog/settings.h"

namespace watchdog {

/// A key in its parts: names may hold dots.
using KeyPath = std::vector<std::string>;

struct Row {
  std::string_view key;  ///< `*` stands for a name: of a type of agent, a pattern or a tool.
  Field (*field)(Settings& settings, const KeyPath& path);
  Allowed allowed{};
  std::string_view help;
  std::string_view variable{};  ///< Besides the one made of the key.
  std::string_view flag{};
};

/// All rows, in the order of the sample.
[[nodiscard]] std::span<const Row> setting_rows() noexcept;

/// A row, and the names for its `*`.
struct Setting {
  const Row* row;
  KeyPath path;

  [[nodiscard]] std::string key() const;
  [[nodiscard]] Field field(Settings& settings) const { return row->field(settings, path); }
  /// Of the environment, the most particular one last.
  [[nodiscard]] std::vector<std::string> variables() const;
};

/// Also by its other name, if it has one.
[[nodiscard]] std::optional<Setting> find_setting(const KeyPath& path);
[[nodiscard]] std::optional<Setting> find_setting(std::string_view plain_key);
/// All there are, in the order of the table; those with a `*` for each name that is there.
[[nodiscard]] std::vector<Setting> settings_in(const Settings& settings);
/// The setting of a variable whose name has the name for a `*`, in lower case: OPS in
/// WATCHDOG_ALERTS_CHANNELS_OPS_TYPE. Nothing: no key with a `*` has such a variable.
[[nodiscard]] std::optional<Setting> named_setting(std::string_view variable);
/// True if settings begin so.
[[nodiscard]] bool is_section(const KeyPath& path);

/// The key as it is written in a file.
[[nodiscard]] std::string key_text(const KeyPath& path);
[[nodiscard]] KeyPath parts_of(std::string_view plain_key);
/// Returns true if the path is of a key in which `*` stands for any name.
[[nodiscard]] bool is_key_of(const KeyPath& path, std::string_view key);
/// `policy.stuckThreshold` → WATCHDOG_POLICY_STUCK_THRESHOLD.
[[nodiscard]] std::string variable_of(std::string_view key);

}  // namespace watchdog
