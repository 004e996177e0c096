#include "http/client.h"

#include <boost/asio/ip/address.hpp>
#include <string_view>
#include <utility>

#include "net/url.h"

namespace watchdog::monitor {
namespace {

/// No answer of a monitor is longer.
constexpr std::size_t answer_bytes_max = 256U * 1024 * 1024;

std::string_view verb_of(Method method) {
  switch (method) {
    case Method::post:
      return "POST";
    case Method::patch:
      return "PATCH";
    case Method::del:
      return "DELETE";
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
  const bool is_encrypted = server->tls;
  auto http = HttpClient::to(
      std::move(*server),
      {.ca_file = std::move(options.ca_file),
       .fault_of_local = is_encrypted ? nullptr : std::move(options.fault_of_local)});
  if (!http) return http.error();
  return MonitorClient(url, std::move(options.token), std::move(*http));
}

HttpRequest MonitorClient::request(Method method, const std::string& target) const {
  HttpRequest request{.method = verb_of(method), .target = target};
  if (!token_.empty()) request.headers.emplace_back("Authorization", "Bearer " + token_);
  return request;
}

Result<Response> MonitorClient::ask(Method method, const std::string& target,
                                    const std::string& body) {
  auto request = this->request(method, target);
  request.body = body;
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

Result<Response> MonitorClient::listen(const std::string& target, const std::string& last_event_id,
                                       const std::function<bool(std::string_view)>& receive,
                                       const std::stop_token& stop) {
  auto request = this->request(Method::get, target);
  request.headers.emplace_back("Accept", "text/event-stream");
  request.headers.emplace_back("Connection",
                               "close");  // a body with enough of it is closed at once
  if (!last_event_id.empty()) request.headers.emplace_back("Last-Event-ID", last_event_id);
  Response response;
  bool wanted = true;
  const auto sink = [&](const HttpHead& head, std::string_view piece) {
    if (head.status == 200) return wanted = wanted && receive(piece);
    response.body += piece;
    return response.body.size() <= answer_bytes_max;
  };
  const auto head = http_.ask(request, sink, stop);
  response.status = head ? head->status : 200;
  if (!wanted) return response;
  if (stop.stop_requested()) return Error{ErrorCode::cancelled, "listening was called off"};
  if (!head) {
    return Error{ErrorCode::unavailable, "no answer from " + url_ + ": " + head.error().message,
                 "server"};
  }
  if (response.status == 200)
    return Error{ErrorCode::unavailable, url_ + " ended the stream", "server"};
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
