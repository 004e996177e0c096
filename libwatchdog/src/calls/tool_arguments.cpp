#include "calls/tool_arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/json.h"

namespace watchdog {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

constexpr const char* wait_for_previous = "wait_for_previous";

/// Nearly no call has it, and a document of a megabyte is not read for nothing.
bool is_meant(const std::string& arguments, const std::vector<std::string>& declares) {
  return arguments.find(wait_for_previous) != std::string::npos &&
         std::find(declares.begin(), declares.end(), wait_for_previous) == declares.end() &&
         is_object(arguments);
}

}  // namespace

bool is_object(std::string_view arguments) {
  const auto begin = arguments.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && arguments[begin] == '{' && is_json(arguments);
}

bool waits_for_previous(const std::string& arguments, const std::vector<std::string>& declares) {
  if (!is_meant(arguments, declares)) return false;
  const auto document = Json::parse(arguments, nullptr, false);
  const auto found = document.find(wait_for_previous);
  return found != document.end() && found->is_boolean() && found->get<bool>();
}

void extract_wait_for_previous(std::string& arguments, const std::vector<std::string>& declares) {
  if (!is_meant(arguments, declares)) return;
  auto document = Json::parse(arguments, nullptr, false);
  if (document.erase(wait_for_previous) > 0) arguments = dumped(document);
}

std::string with_confirmation(const std::string& arguments) {
  auto document = Json::parse(arguments, nullptr, false);
  document["confirm_write"] = true;
  return dumped(document);
}

bool is_unfenced(const ToolSpec& spec) noexcept {
  return writes(spec.effect) && spec.stoppable == Stoppable::not_stoppable && !spec.gated;
}

std::string key_of_call(std::string_view tool, std::string_view arguments) {
  // Without the order of members, which says nothing.
  const auto document = nlohmann::json::parse(arguments, nullptr, false);
  return std::string(tool) + " " +
         document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace watchdog
