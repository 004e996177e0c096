#include "http/server.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
// The concrete executor and a plain socket: the general ones cost twice the instructions a request.
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;
using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;
using SteadyClock = std::chrono::steady_clock;

std::string_view text(beast::string_view view) {
  return {view.data(), view.size()};
}

Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::get;
    case http::verb::head:
      return Method::head;
    case http::verb::post:
      return Method::post;
    case http::verb::patch:
      return Method::patch;
    default:
      return Method::other;
  }
}

/// Status line, headers and body in one piece: one write a response.
std::string on_the_wire(const Response& response, bool keep_alive, bool with_body) {
  std::string wire;
  wire.reserve(256 + response.extra_headers.size() + response.body.size());
  wire.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  wire.append(
      text(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)))));
  wire.append("\r\nContent-Type: ").append(response.content_type);
  wire.append("\r\nContent-Length: ").append(std::to_string(response.body.size()));
  wire.append("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  wire.append(response.extra_headers);
  wire.append(keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
  if (with_body) wire.append(response.body);
  return wire;
}

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  class Connection;

  State(asio::io_context& io, Admission admit, Handler answer, ServerLimits bounds,
        Metrics* counted)
      : context(io),
        acceptor(io),
        sweep(io),
        admission(std::move(admit)),
        handler(std::move(answer)),
        limits(bounds),
        metrics(counted) {}

  asio::io_context& context;
  Acceptor acceptor;
  asio::steady_timer sweep;
  Admission admission;
  Handler handler;
  ServerLimits limits;
  Metrics* metrics;
  std::unordered_set<std::shared_ptr<Connection>> connections;
  std::size_t bodies_bytes = 0;  ///< Of all requests under way.
  bool accept_paused = false;
  bool stopping = false;

  void accept();
  void sweep_later();
};

/// One client: reads a request, has it answered, writes the response, and again.
class HttpServer::State::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> server, Socket socket)
      : server_(std::move(server)), socket_(std::move(socket)) {}

  void read() {
    if (server_->stopping) return close();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_->limits.header_bytes_max));
    parser_->body_limit(server_->limits.body_bytes_max);
    phase_ = Phase::idle;
    expires_ = SteadyClock::now() + std::chrono::seconds(server_->limits.idle_seconds_max);
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              self->got_header(error);
                            });
  }

  /// Called now and then: closes what takes too long.
  void sweep(SteadyClock::time_point now) {
    if (phase_ == Phase::idle && buffer_.size() > 0) {
      phase_ = Phase::receiving;  // a request has begun and does not end
      expires_ = now + std::chrono::seconds(server_->limits.request_seconds_max);
    }
    if (phase_ != Phase::answering && now >= expires_) close();
  }

  /// Ends the connection unless an answer is under way; then it ends with that.
  void stop() {
    if (phase_ == Phase::idle || phase_ == Phase::receiving) close();
  }

 private:
  enum class Phase : std::uint8_t { idle, receiving, answering, writing };

  void got_header(beast::error_code error) {
    if (error) return refuse(error);
    const auto& header = parser_->get();
    if (header.count(http::field::host) > 1) return refuse(http::error::bad_field);
    // A body in an encoding that is not understood would be taken for the next request.
    if (header.count(http::field::transfer_encoding) > 0 && !header.chunked()) {
      return refuse(http::error::bad_transfer_encoding);
    }
    with_body_ = header.method() != http::verb::head;
    request_ = Request{.method = method_of(header.method()),
                       .target = std::string(text(header.target())),
                       .host = std::string(text(header[http::field::host])),
                       .origin = std::string(text(header[http::field::origin])),
                       .authorization = std::string(text(header[http::field::authorization])),
                       .fetch_site = std::string(text(header["Sec-Fetch-Site"]))};
    if (auto refusal = server_->admission(request_)) {
      if (!parser_->is_done()) return write_last(*refusal);
      keep_alive_ = header.keep_alive() && !server_->stopping;
      return write(*refusal);
    }
    if (parser_->is_done()) return answer();
    const auto length = parser_->content_length();
    if (length && *length > server_->limits.body_bytes_max) return refuse(http::error::body_limit);
    // A body of unknown length counts as the largest.
    reserved_ = length ? static_cast<std::size_t>(*length) : server_->limits.body_bytes_max;
    if (server_->bodies_bytes + reserved_ > server_->limits.bodies_bytes_max) {
      reserved_ = 0;
      return write_last(
          error_response(503, "unavailable", "too many large requests at once; try again"));
    }
    server_->bodies_bytes += reserved_;
    phase_ = Phase::receiving;
    expires_ = SteadyClock::now() + std::chrono::seconds(server_->limits.request_seconds_max);
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue"))
      return write_continue();
    read_body();
  }

  void write_continue() {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(socket_, asio::buffer(go_on),
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        error ? self->close() : self->read_body();
                      });
  }

  void read_body() {
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       error ? self->refuse(error) : self->answer();
                     });
  }

  void refuse(beast::error_code error) {
    if (error == http::error::body_limit) {
      return write_last(error_response(
          413, "exhausted",
          "a body may have at most " + std::to_string(server_->limits.body_bytes_max) + " bytes"));
    }
    if (error == http::error::header_limit) {
      return write_last(error_response(431, "exhausted",
                                       "the headers may have at most " +
                                           std::to_string(server_->limits.header_bytes_max) +
                                           " bytes"));
    }
    if (error == http::error::end_of_stream ||
        error.category() != http::make_error_code(http::error::bad_method).category() ||
        error == http::error::partial_message) {
      return close();
    }
    write_last(error_response(400, "malformed", "this is no HTTP/1.1 request: " + error.message()));
  }

  void answer() {
    phase_ = Phase::answering;
    auto message = parser_->release();
    keep_alive_ = message.keep_alive() && !server_->stopping;
    request_.body = std::move(message.body());
    const auto here = std::this_thread::get_id();
    server_->handler(
        std::move(request_), [self = shared_from_this(), here,
                              open = asio::make_work_guard(server_->context)](Response response) {
          // Answers from memory come on this thread, within the call.
          if (std::this_thread::get_id() == here) return self->write(response);
          asio::post(self->server_->context,
                     [self, response = std::move(response)] { self->write(response); });
        });
  }

  void write(const Response& response) {
    phase_ = Phase::writing;  // bounded: the client may not read
    expires_ = SteadyClock::now() + std::chrono::seconds(server_->limits.request_seconds_max);
    wire_ = on_the_wire(response, keep_alive_, with_body_);
    asio::async_write(socket_, asio::buffer(wire_),
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        self->release_body();
                        error || !self->keep_alive_ ? self->close() : self->read();
                      });
  }

  /// Says why, and hangs up: what follows on this connection cannot be understood.
  void write_last(const Response& response) {
    phase_ = Phase::receiving;  // bounded: the client may not read
    expires_ = SteadyClock::now() + std::chrono::seconds(5);
    wire_ = on_the_wire(response, false, with_body_);
    asio::async_write(
        socket_, asio::buffer(wire_),
        [self = shared_from_this()](beast::error_code, std::size_t) { self->drain(); });
  }

  /// Reads what the client still sends for a moment; closing at once would reset the connection and
  /// take the response with it.
  void drain() {
    beast::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(65'536),
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              error ? self->close() : self->drain();
                            });
  }

  void release_body() { server_->bodies_bytes -= std::exchange(reserved_, 0); }

  void close() {
    release_body();
    beast::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
    if (server_->connections.erase(shared_from_this()) > 0 && server_->metrics != nullptr)
      server_->metrics->connections_closed.add();
  }

  std::shared_ptr<State> server_;
  Socket socket_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  std::string wire_;
  Phase phase_ = Phase::idle;
  SteadyClock::time_point expires_;
  std::size_t reserved_ = 0;
  bool keep_alive_ = false;
  bool with_body_ = true;
};

void HttpServer::State::accept() {
  acceptor.async_accept([self = shared_from_this()](beast::error_code error, Socket socket) {
    if (error == asio::error::operation_aborted || self->stopping) return;
    if (!error && self->connections.size() < self->limits.connections_max) {
      socket.set_option(tcp::no_delay(true), error);
      auto connection = std::make_shared<Connection>(self, std::move(socket));
      self->connections.insert(connection);
      if (self->metrics != nullptr) self->metrics->connections_opened.add();
      connection->read();
    } else if (!error && self->metrics != nullptr) {
      self->metrics->connections_refused.add();
    }
    if (error == asio::error::no_descriptors) {
      self->accept_paused = true;  // nothing can be accepted before something is closed
      return;
    }
    self->accept();
  });
}

void HttpServer::State::sweep_later() {
  sweep.expires_after(std::chrono::seconds(1));
  sweep.async_wait([self = shared_from_this()](beast::error_code) {
    if (self->stopping && self->connections.empty()) return;
    const auto now = SteadyClock::now();
    const auto open = self->connections;  // closing one erases it
    for (const auto& connection : open) connection->sweep(now);
    if (std::exchange(self->accept_paused, false) && !self->stopping) self->accept();
    self->sweep_later();
  });
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() {
  stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& context,
                                                       const std::string& address,
                                                       std::uint16_t port, Admission admission,
                                                       Handler handler, ServerLimits limits,
                                                       Metrics* metrics) {
  beast::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) {
    return Error{ErrorCode::invalid, address + " is no IP address", "bind"};
  }
  auto state =
      std::make_shared<State>(context, std::move(admission), std::move(handler), limits, metrics);
  auto& acceptor = state->acceptor;
  const tcp::endpoint endpoint(ip, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{
        ErrorCode::unavailable,
        "cannot listen on " + address + " port " + std::to_string(port) + ": " + error.message(),
        "port"};
  }
  state->accept();
  state->sweep_later();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

std::string HttpServer::url() const {
  const auto endpoint = state_->acceptor.local_endpoint();
  const auto host = endpoint.address().to_string();
  return "http://" + (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(endpoint.port());
}

void HttpServer::stop() {
  if (state_->stopping) return;
  state_->stopping = true;
  beast::error_code ignored;
  state_->acceptor.close(ignored);
  state_->sweep.cancel();
  const auto open = state_->connections;
  for (const auto& connection : open) connection->stop();
}

Result<bool> is_loopback(const std::string& address) {
  beast::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) return Error{ErrorCode::invalid, address + " is no IP address", "bind"};
  return ip.is_loopback();
}

}  // namespace watchdog::monitor
