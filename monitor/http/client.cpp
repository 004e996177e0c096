#include "http/client.h"

#include <boost/asio/ip/address.hpp>
#include <string_view>
#include <utility>

#include "watchdog/url.h"

namespace watchdog::monitor {
namespace {

/// No answer of a monitor is so long.
constexpr std::size_t answer_bytes_max = 256U * 1024 * 1024;

std::string_view verb_of(Method method) {
  switch (method) {
    case Method::post:
      return "POST";
    case Method::patch:
      return "PATCH";
    case Method::get:
    case Method::head:
    case Method::other:
      break;
  }
  return "GET";
}

}  // namespace

Result<MonitorClient> MonitorClient::to(const std::string& url, Options options) {
  auto server = url_from(url);
  if (!server) return Error{server.error().code, server.error().message, "server"};
  if (!server->path.empty()) {
    return Error{ErrorCode::invalid, url + ": a monitor's URL has no path", "server"};
  }
  auto http = HttpClient::to(std::move(*server), {.ca_file = std::move(options.ca_file)});
  if (!http) return http.error();
  return MonitorClient(url, std::move(options.token), std::move(*http));
}

Result<Response> MonitorClient::ask(Method method, const std::string& target,
                                    const std::string& body) {
  HttpRequest request{.method = verb_of(method), .target = target, .body = body};
  request.headers.emplace_back("User-Agent", "watchdog-monitor");
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  if (!body.empty()) request.headers.emplace_back("Content-Type", "application/json");
  Response response;
  const auto head = http_.ask(request, [&](const HttpHead&, std::string_view piece) {
    if (response.body.size() + piece.size() > answer_bytes_max) return false;
    response.body += piece;
    return true;
  });
  if (!head) {
    return Error{ErrorCode::unavailable, "no answer from " + url_ + ": " + head.error().message,
                 "server"};
  }
  response.status = head->status;
  return response;
}

bool is_loopback_url(const std::string& url) {
  const auto server = url_from(url);
  if (!server) return false;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(server->host, error);
  return error ? server->host == "localhost" : address.is_loopback();
}

}  // namespace watchdog::monitor
