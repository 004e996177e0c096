#include "llm/error_body.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "llm/members.h"

namespace watchdog {
namespace {

using nlohmann::json;

constexpr bool is_status(std::int64_t number) {
  return number >= 400 && number < 600;
}

ErrorBody from_object(const json& error) {
  ErrorBody body{.message = std::string(text_member(error, "message")),
                 .type = std::string(text_member(error, "type")),
                 .code = std::string(text_member(error, "code"))};
  for (const char* name : {"code", "status", "status_code"}) {
    const auto number = integer_member(error, name);
    if (number && is_status(*number)) body.status = static_cast<int>(*number);
  }
  int number = 0;  // some write numbers as text
  const auto [end, failed] =
      std::from_chars(body.code.data(), body.code.data() + body.code.size(), number);
  if (failed == std::errc{} && end == body.code.data() + body.code.size() && is_status(number)) {
    body.status = number;
    body.code.clear();
  }
  if (body.message.empty())
    body.message = error.dump(-1, ' ', false, json::error_handler_t::replace);
  return body;
}

}  // namespace

std::optional<ErrorBody> error_body_from(const json& value) {
  if (const json* error = member(value, "error")) {
    if (error->is_object()) return from_object(*error);
    if (error->is_string()) return ErrorBody{.message = error->get<std::string>()};
    return ErrorBody{.message = error->dump()};
  }
  if (text_member(value, "object") == "error") return from_object(value);
  if (const json* detail = member(value, "detail")) {  // FastAPI
    if (member(value, "choices") != nullptr) return std::nullopt;
    if (detail->is_string()) return ErrorBody{.message = detail->get<std::string>()};
    return ErrorBody{.message = detail->dump(-1, ' ', false, json::error_handler_t::replace)};
  }
  return std::nullopt;
}

ErrorBody error_body_from(std::string_view text) {
  if (const auto value = json_from(text)) {
    if (auto body = error_body_from(*value)) return *body;
  }
  return {.message = std::string(text)};
}

}  // namespace watchdog
