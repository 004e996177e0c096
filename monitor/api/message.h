/// \file
/// A request and its response, without any socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "watchdog/result.h"

namespace watchdog::monitor {

enum class Method : std::uint8_t { get, head, post, patch, other };

/// A plain value. Texts are as they came over the wire.
struct Request {
  Method method = Method::get;
  std::string target;  ///< Path and query, percent-encoded.
  std::string host;
  std::string origin;
  std::string authorization;
  std::string cookie;
  std::string fetch_site;      ///< Sec-Fetch-Site
  std::string forwarded_for;   ///< X-Forwarded-For, its last line.
  std::string peer;            ///< Address that it came from, without its port; empty: no socket.
  std::size_t body_bytes = 0;  ///< As announced; of a body of unknown length SIZE_MAX.
  std::string body;
};

/// A plain value.
struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string extra_headers;  ///< Complete lines, each with its CRLF.
};

/// Called exactly once, from any thread.
using Reply = std::function<void(Response)>;

/// `{"error": {"code", "message", "field"?, "line"?}}` with the status that fits.
[[nodiscard]] Response error_response(const Error& error);
[[nodiscard]] Response error_response(int status, std::string_view code, std::string_view message);

}  // namespace watchdog::monitor
