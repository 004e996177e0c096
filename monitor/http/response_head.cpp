#include "http/response_head.h"

#include <boost/beast/http/status.hpp>
#include <string_view>

namespace watchdog::monitor {
namespace {

std::string_view reason_of(int status) {
  namespace http = boost::beast::http;
  const auto reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)));
  return {reason.data(), reason.size()};
}

std::string head_of(const Response& response) {
  std::string wire;
  wire.reserve(512 + response.extra_headers.size() +
               (response.body.size() <= copied_body_bytes_max ? response.body.size() : 0));
  wire.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  wire.append(reason_of(response.status));
  // These two have no body, and say nothing of one.
  const bool bodiless = response.status == 204 || response.status == 304;
  if (!bodiless) wire.append("\r\nContent-Type: ").append(response.content_type);
  wire.append("\r\nCache-Control: ").append(response.cache_control);
  wire.append("\r\nX-Content-Type-Options: nosniff\r\n").append(response.extra_headers);
  return wire;
}

}  // namespace

std::string response_head(const Response& response, bool keep_alive) {
  auto wire = head_of(response);
  if (response.status != 204 && response.status != 304)
    wire.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  return wire.append(keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

std::string pieces_head(const Response& response, bool chunked, bool keep_alive) {
  auto wire = head_of(response);
  if (chunked) wire.append("Transfer-Encoding: chunked\r\n");
  return wire.append(keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

}  // namespace watchdog::monitor
