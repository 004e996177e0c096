#include "mcp/exchange.h"

#include <algorithm>
#include <utility>

namespace watchdog::monitor::mcp {

const json& Exchange::progress_token() const {
  static const json none;
  const auto& token = member(member(params, "_meta"), "progressToken");
  return token.is_string() || token.is_number_integer() ? token : none;
}

void Exchange::notify(std::string_view method, json about) {
  if (send_) send_(notification_of(method, std::move(about)), false);
}

void Exchange::ask(const json& id, std::string_view method, json about) {
  if (send_) send_(request_of(id, method, std::move(about)), false);
}

void Exchange::progress(double value, const std::string& words) {
  progress_ = std::max(value, progress_ + 1);
  notify("notifications/progress",
         {{"progressToken", progress_token()}, {"progress", progress_}, {"message", words}});
}

void Exchange::finish(json result) {
  if (is_modern() && !result.contains("resultType")) result["resultType"] = "complete";
  answer(response_of(id_, std::move(result)));
}

void Exchange::fail(int code, std::string message, json data) {
  answer(response_of(
      RpcError{.code = code, .message = std::move(message), .data = std::move(data), .id = id_}));
}

void Exchange::answer(const json& message) {
  const auto send = std::exchange(send_, nullptr);
  if (send) send(message, true);
  work.reset();
}

void Exchange::close() {
  const bool was_open = std::exchange(send_, nullptr) != nullptr;
  work.reset();
  if (was_open && closed) closed();
}

json tool_result(json structured) {
  auto text = line_of(structured);
  return {{"content", {{{"type", "text"}, {"text", std::move(text)}}}},
          {"structuredContent", std::move(structured)}};
}

json tool_error(const std::string& words) {
  return {{"content", {{{"type", "text"}, {"text", words}}}}, {"isError", true}};
}

}  // namespace watchdog::monitor::mcp
