#include "http/client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <utility>

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

http::verb verb_of(Method method) {
  switch (method) {
    case Method::get:
      return http::verb::get;
    case Method::head:
      return http::verb::head;
    case Method::post:
      return http::verb::post;
    case Method::patch:
      return http::verb::patch;
    case Method::other:
      break;
  }
  return http::verb::options;
}

}  // namespace

struct HttpClient::State {
  std::string url, host, port, authority, token;
  asio::io_context context;
  beast::tcp_stream stream{context};
  beast::flat_buffer buffer;
  bool connected = false;

  beast::error_code connect() {
    beast::error_code error;
    asio::ip::tcp::resolver resolver(context);
    const auto addresses = resolver.resolve(host, port, error);
    if (!error) stream.connect(addresses, error);
    connected = !error;
    if (connected) stream.socket().set_option(asio::ip::tcp::no_delay(true), error);
    return error;
  }

  beast::error_code exchange(const http::request<http::string_body>& request,
                             http::response_parser<http::string_body>& parser) {
    beast::error_code error;
    http::write(stream, request, error);
    if (!error) http::read(stream, buffer, parser, error);
    if (error || !parser.get().keep_alive()) {
      stream.close();
      connected = false;
      buffer.clear();
    }
    return error;
  }
};

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

Result<HttpClient> HttpClient::to(const std::string& url, std::string token) {
  const auto parsed = boost::urls::parse_uri({url.data(), url.size()});
  if (!parsed || parsed->scheme() != "http" || parsed->host().empty()) {
    return Error{ErrorCode::invalid, url + " is no http:// URL", "server"};
  }
  auto state = std::make_unique<State>();
  state->url = url;
  state->host = parsed->host_address();
  state->port = parsed->has_port() ? std::string(parsed->port()) : "80";
  state->authority = std::string(parsed->encoded_host_and_port());
  state->token = std::move(token);
  return HttpClient(std::move(state));
}

bool is_loopback_url(const std::string& url) {
  const auto parsed = boost::urls::parse_uri({url.data(), url.size()});
  if (!parsed) return false;
  const auto host = parsed->host_address();
  beast::error_code error;
  const auto address = asio::ip::make_address(host, error);
  return error ? host == "localhost" : address.is_loopback();
}

Result<Response> HttpClient::ask(Method method, const std::string& target,
                                 const std::string& body) {
  State& state = *state_;
  http::request<http::string_body> request(verb_of(method), target, 11);
  request.set(http::field::host, state.authority);
  request.set(http::field::user_agent, "watchdog-monitor");
  if (!state.token.empty()) request.set(http::field::authorization, "Bearer " + state.token);
  if (!body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = body;
  request.prepare_payload();

  // An idle connection may have been closed meanwhile: once more with a fresh one.
  for (bool fresh = !state.connected;; fresh = true) {
    beast::error_code error = state.connected ? beast::error_code{} : state.connect();
    http::response_parser<http::string_body> parser;
    parser.body_limit(256 * 1024 * 1024);
    if (!error) error = state.exchange(request, parser);
    if (!error) {
      auto message = parser.release();
      return Response{.status = static_cast<int>(message.result_int()),
                      .body = std::move(message.body())};
    }
    if (fresh) {
      return Error{ErrorCode::unavailable, "no answer from " + state.url + ": " + error.message(),
                   "server"};
    }
  }
}

}  // namespace watchdog::monitor
