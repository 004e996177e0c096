#include "mcp/rpc.h"

#include <utility>

namespace watchdog::monitor::mcp {
namespace {

bool is_id(const json& id) {
  constexpr std::size_t id_bytes_max = 256;
  return id.is_number_integer() ||
         (id.is_string() && id.get_ref<const std::string&>().size() <= id_bytes_max);
}

RpcError invalid(std::string message, json id = nullptr) {
  return {.code = rpc_invalid_request, .message = std::move(message), .id = std::move(id)};
}

}  // namespace

bool is_too_deep(std::string_view text, int depth_max) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_text) {
      if (letter == '\\') ++at;
      if (letter == '"') in_text = false;
    } else if (letter == '"') {
      in_text = true;
    } else if (letter == '[' || letter == '{') {
      if (++depth > depth_max) return true;
    } else if (letter == ']' || letter == '}') {
      --depth;
    }
  }
  return false;
}

Result<Message, RpcError> message_from(std::string_view text) {
  if (is_too_deep(text))
    return invalid("the message is nested deeper than " + std::to_string(message_depth_max) +
                   " levels");
  auto read = json::parse(text, nullptr, false);
  if (read.is_discarded())
    return RpcError{.code = rpc_parse_error, .message = "the message is not JSON"};
  if (read.is_array()) return invalid("batches are not supported; send one message at a time");
  if (!read.is_object()) return invalid("the message must be an object");
  const auto& id = member(read, "id");
  const auto known = is_id(id) ? id : json();
  if (text_in(read, "jsonrpc") != "2.0") return invalid("\"jsonrpc\" must be \"2.0\"", known);
  if (!read.contains("method")) {
    if (!read.contains("result") && !read.contains("error"))
      return invalid("\"method\" is missing", known);
    return Message{.kind = Message::Kind::response, .id = known, .result = member(read, "result")};
  }
  if (!read["method"].is_string()) return invalid("\"method\" must be a text", known);
  Message message{
      .kind = read.contains("id") ? Message::Kind::request : Message::Kind::notification,
      .id = known,
      .method = read["method"]};
  if (message.kind == Message::Kind::request && known.is_null())
    return invalid("\"id\" must be an integer, or a text of at most 256 bytes");
  if (const auto& params = member(read, "params"); !params.is_null()) {
    if (!params.is_object())
      return RpcError{
          .code = rpc_invalid_params, .message = "\"params\" must be an object", .id = known};
    message.params = params;
  }
  return message;
}

json response_of(const json& id, json result) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

json response_of(const RpcError& error) {
  json about = {{"code", error.code}, {"message", error.message}};
  if (!error.data.is_null()) about["data"] = error.data;
  json response = {{"jsonrpc", "2.0"}, {"error", std::move(about)}};
  // The schemas of the protocol know no id that is null.
  if (!error.id.is_null()) response["id"] = error.id;
  return response;
}

json request_of(const json& id, std::string_view method, json params) {
  return {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}};
}

json notification_of(std::string_view method, json params) {
  return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

std::string line_of(const json& message) {
  return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_in(const json& object, const char* name) {
  const auto& found = member(object, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::int64_t number_in(const json& object, const char* name, std::int64_t otherwise) {
  const auto& found = member(object, name);
  return found.is_number_integer() ? found.get<std::int64_t>() : otherwise;
}

}  // namespace watchdog::monitor::mcp
