#include "http/client.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <chrono>
#include <utility>

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

/// A stream that lives is never silent for so long.
constexpr std::chrono::seconds silence_max{40};

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
    if (error || !parser.get().keep_alive()) hang_up();
    return error;
  }

  void hang_up() {
    stream.close();
    connected = false;
    buffer.clear();
  }

  [[nodiscard]] http::request<http::string_body> request(Method method,
                                                         const std::string& target) const {
    http::request<http::string_body> request(verb_of(method), target, 11);
    request.set(http::field::host, authority);
    request.set(http::field::user_agent, "watchdog-monitor");
    if (!token.empty()) request.set(http::field::authorization, "Bearer " + token);
    return request;
  }

  [[nodiscard]] Error unreached(const beast::error_code& error) const {
    return {ErrorCode::unavailable, "no answer from " + url + ": " + error.message(), "server"};
  }

  /// Begins something asynchronous and runs it to its end, on this thread.
  beast::error_code run(const auto& begin) {
    beast::error_code result;
    begin([&](beast::error_code error, std::size_t) { result = error; });
    context.restart();
    context.run();
    return result;
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
  auto request = state.request(method, target);
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
    if (fresh) return state.unreached(error);
  }
}

Result<Response> HttpClient::listen(const std::string& target, const std::string& last_event_id,
                                    const std::function<bool(std::string_view)>& take,
                                    const std::stop_token& stop) {
  State& state = *state_;
  auto request = state.request(Method::get, target);
  request.set(http::field::accept, "text/event-stream");
  if (!last_event_id.empty()) request.set("Last-Event-ID", last_event_id);

  state.hang_up();
  if (const auto error = state.connect()) return state.unreached(error);
  const std::stop_callback on_stop(
      stop, [&] { asio::post(state.context, [&] { state.stream.close(); }); });
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  beast::error_code error;
  const auto step = [&](const auto& begin) {
    if (error) return;
    state.stream.expires_after(silence_max);
    error = state.run(begin);
  };
  step([&](auto done) { http::async_write(state.stream, request, std::move(done)); });
  step([&](auto done) {
    http::async_read_header(state.stream, state.buffer, parser, std::move(done));
  });
  Response response;
  if (!error) response.status = static_cast<int>(parser.get().result_int());
  std::array<char, 16'384> piece{};
  bool wanted = true;
  while (!error && wanted && !parser.is_done()) {
    parser.get().body() = {.data = piece.data(), .size = piece.size(), .more = true};
    step([&](auto done) {
      http::async_read_some(state.stream, state.buffer, parser, std::move(done));
    });
    if (error == http::error::need_buffer) error = {};
    const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
    if (response.status != 200) {
      response.body += bytes;
    } else if (!bytes.empty()) {
      wanted = take(bytes);
    }
  }
  state.hang_up();
  if (!wanted) return response;
  if (stop.stop_requested()) return Error{ErrorCode::cancelled, "listening was called off"};
  if (error) return state.unreached(error);
  if (response.status == 200)
    return Error{ErrorCode::unavailable, state.url + " ended the stream", "server"};
  return response;
}

}  // namespace watchdog::monitor
