#include "llm/members.h"

#include <nlohmann/json.hpp>

#include "codec/fields.h"

namespace watchdog {

using nlohmann::json;

std::optional<json> json_from(std::string_view text) {
  auto parsed = parse_json(text, response_values_max);
  if (!parsed) return std::nullopt;
  return std::move(*parsed);
}

const json* member(const json& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

const json* object_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  return found != nullptr && found->is_object() ? found : nullptr;
}

const json* array_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  return found != nullptr && found->is_array() ? found : nullptr;
}

std::string_view text_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  if (found == nullptr || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

std::string text_or_json(const json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::int64_t> integer_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  if (found == nullptr || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<double> number_member(const json& value, std::string_view name) {
  const json* found = member(value, name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace watchdog
