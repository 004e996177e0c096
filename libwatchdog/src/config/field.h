/// \file
/// One field of the settings: read from what was given for it, and shown again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/settings.h"

namespace watchdog {

/// A threshold by its path in the policy's JSON.
struct PolicyField {
  PolicyPatch* patch;
  std::vector<std::string> path;
};

/// A time in seconds whose key does not say so.
struct SecondsField {
  Millis* time;
};

using Field =
    std::variant<bool*, int*, std::uint16_t*, std::int64_t*, double*, std::string*,
                 std::filesystem::path*, Millis*, std::optional<std::int64_t>*,
                 std::optional<double>*, std::optional<Millis>*, OnConfirmedStuck*, Migration*,
                 ChannelType*, AlertFormat*, std::vector<std::string>*, AlertContent*,
                 std::vector<AlertCause>*, BudgetVisibility*, DeadlineProfile*, LogFormat*,
                 KeepAliveMode*, HungAnswer*, std::vector<RecoveryState>*, RecoveryStep*,
                 BudgetScope*, SecondsField, PolicyField>;

/// The form of a text, besides UTF-8 without control characters.
enum class Shape : std::uint8_t { text, url, pattern };

/// The allowed values of a field. Numbers are in the unit of the file: times by the end of the key
/// (`_ms`, `_seconds`), shares by `_percent`.
struct Allowed {
  double min = 0;
  double max = 0;
  Shape shape = Shape::text;
  bool secret = false;  ///< Never shown, not even in a refusal.
};

/// Sets the field. The error's message goes on after the key: `is 0; it must be …`.
[[nodiscard]] Result<void> set(const Field& field, const nlohmann::json& given,
                               std::string_view key, const Allowed& allowed);
/// Its value in the unit of the file; null: none.
[[nodiscard]] nlohmann::json shown(const Field& field, std::string_view key);
/// Type and range in words.
[[nodiscard]] std::string allowed_text(const Field& field, const Allowed& allowed);
/// Returns the value of a text from the environment or the command line. A text that is not of the
/// field's type stays one, and is then refused.
[[nodiscard]] nlohmann::json parsed(const Field& field, const std::string& text);

/// A value as TOML has it, on one line.
[[nodiscard]] std::string literal(const nlohmann::json& value);

}  // namespace watchdog
