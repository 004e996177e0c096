#include "tools/tool_arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "watchdog/json.h"

namespace watchdog {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

bool is_object(std::string_view arguments) {
  const auto begin = arguments.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && arguments[begin] == '{' && is_json(arguments);
}

bool take_wait_for_previous(std::string& arguments, const std::vector<std::string>& declares) {
  constexpr const char* name = "wait_for_previous";
  if (arguments.find(name) == std::string::npos || !is_object(arguments)) return false;
  if (std::find(declares.begin(), declares.end(), name) != declares.end()) return false;
  auto document = Json::parse(arguments, nullptr, false);
  const auto found = document.find(name);
  if (found == document.end()) return false;
  const bool waits = found->is_boolean() && found->get<bool>();
  document.erase(name);
  arguments = dumped(document);
  return waits;
}

std::string with_confirmation(const std::string& arguments) {
  auto document = Json::parse(arguments, nullptr, false);
  document["confirm_write"] = true;
  return dumped(document);
}

}  // namespace watchdog
