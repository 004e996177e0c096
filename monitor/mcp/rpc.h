/// \file
/// JSON-RPC 2.0 messages as the Model Context Protocol (MCP) has them, and its revisions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor::mcp {

using nlohmann::json;

/// A deeper message is refused: what writes JSON calls itself for each level.
inline constexpr int message_depth_max = 64;
/// A longer line of a client is refused.
inline constexpr std::size_t message_bytes_max = 4 * 1024 * 1024;

/// Revisions of the protocol, the oldest first. Those before the last one begin with `initialize`;
/// in the last one each request says everything about its client.
enum class Revision : std::uint8_t { v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };

/// The code of a failed request.
enum RpcCode : int {
  rpc_parse_error = -32700,
  rpc_invalid_request = -32600,
  rpc_method_not_found = -32601,
  rpc_invalid_params = -32602,
  rpc_internal_error = -32603,
  rpc_resource_not_found = -32002,  ///< Before 2026-07-28, which has `rpc_invalid_params` there.
  rpc_header_mismatch = -32020,     ///< From 2026-07-28 on, as the next two.
  rpc_missing_capability = -32021,
  rpc_unsupported_version = -32022
};

/// A plain value.
struct RpcError {
  int code = rpc_internal_error;
  std::string message{};
  json data{};  ///< Null: none.
  json id{};    ///< Of the request, as far as it could be read; null: unknown.
};

/// A message of a client. A plain value.
struct Message {
  enum class Kind : std::uint8_t { request, notification, response };
  Kind kind = Kind::request;
  json id{};  ///< Of a request or a response: a text or an integer.
  std::string method{};
  json params = json::object();
  json result{};  ///< Of a response; null: it is an error.
};

/// True if arrays and objects are nested deeper. Texts are skipped. Pure.
[[nodiscard]] bool is_too_deep(std::string_view text, int depth_max = message_depth_max);

/// Reads one message. Errors: `rpc_parse_error` (no JSON), `rpc_invalid_request` (nested too deep,
/// a batch, no JSON-RPC 2.0). Pure.
[[nodiscard]] Result<Message, RpcError> message_from(std::string_view text);

[[nodiscard]] json response_of(const json& id, json result);
[[nodiscard]] json response_of(const RpcError& error);
[[nodiscard]] json request_of(const json& id, std::string_view method, json params);
[[nodiscard]] json notification_of(std::string_view method, json params);
/// One line of JSON. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string line_of(const json& message);

/// Returns a member that is a text; empty: there is none.
[[nodiscard]] std::string text_in(const json& object, const char* name);
/// Returns a member that is an integer.
[[nodiscard]] std::int64_t number_in(const json& object, const char* name,
                                     std::int64_t otherwise = 0);
/// Returns a member; null: there is none, or `object` is none.
[[nodiscard]] const json& member(const json& object, const char* name);

}  // namespace watchdog::monitor::mcp

namespace watchdog {
template <>
struct Names<monitor::mcp::Revision> {
  static constexpr std::string_view all[] = {"2025-03-26", "2025-06-18", "2025-11-25",
                                             "2026-07-28"};
};
}  // namespace watchdog
