/// \file
/// Reads members of a server's JSON: a field of another type counts as absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace watchdog {

/// A server's report about itself has far fewer values.
inline constexpr std::size_t response_values_max = 100'000;

/// Nothing if the text is not JSON, nested too deeply or of more than `response_values_max` values.
[[nodiscard]] std::optional<nlohmann::json> json_from(std::string_view text);

/// Returns the member, or nullptr: none of that name, null, or `value` is not an object.
[[nodiscard]] const nlohmann::json* member(const nlohmann::json& value, std::string_view name);
[[nodiscard]] const nlohmann::json* object_member(const nlohmann::json& value,
                                                  std::string_view name);
[[nodiscard]] const nlohmann::json* array_member(const nlohmann::json& value,
                                                 std::string_view name);
/// Valid as long as `value`. Empty: absent.
[[nodiscard]] std::string_view text_member(const nlohmann::json& value, std::string_view name);
/// A text as it is, anything else as its JSON.
[[nodiscard]] std::string text_or_json(const nlohmann::json& value);
[[nodiscard]] std::optional<std::int64_t> integer_member(const nlohmann::json& value,
                                                         std::string_view name);
[[nodiscard]] std::optional<double> number_member(const nlohmann::json& value,
                                                  std::string_view name);

}  // namespace watchdog
