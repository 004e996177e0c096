#include "http/server.h"

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
// The concrete executor and a plain socket: the general ones cost twice the instructions a request.
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;
using TlsSocket = asio::ssl::stream<Socket>;
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

std::string head_of(const Response& response) {
  std::string wire;
  wire.reserve(256 + response.extra_headers.size() + response.body.size());
  wire.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ");
  wire.append(
      text(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)))));
  // These two have no body, and say nothing of one.
  const bool bodiless = response.status == 204 || response.status == 304;
  if (!bodiless) wire.append("\r\nContent-Type: ").append(response.content_type);
  wire.append("\r\nCache-Control: ").append(response.cache_control);
  wire.append("\r\nX-Content-Type-Options: nosniff\r\n").append(response.extra_headers);
  return wire;
}

/// Status line, headers and body in one piece: one write a response.
std::string on_the_wire(const Response& response, bool keep_alive, bool with_body) {
  auto wire = head_of(response);
  if (response.status != 204 && response.status != 304)
    wire.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  wire.append(keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
  if (with_body) wire.append(response.body);
  return wire;
}

/// A stream has no length: it ends with the connection.
std::string stream_head(const Response& response) {
  return head_of(response).append("X-Accel-Buffering: no\r\nConnection: close\r\n\r\n");
}

/// What each client costs at most: a write every so often, however much happens.
constexpr std::chrono::milliseconds piece_every{5};
/// A comment tells proxies and clients that a quiet stream still lives.
constexpr std::chrono::seconds keep_alive_every{15};
constexpr std::string_view keep_alive_comment = ": keep-alive\n\n";

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  /// One client, over whatever transport.
  class Connection {
   public:
    Connection() = default;
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    virtual ~Connection() = default;
    virtual void begin() = 0;
    /// Called now and then: closes what takes too long.
    virtual void sweep(SteadyClock::time_point now) = 0;
    /// Ends the connection unless an answer is under way; then it ends with that.
    virtual void stop() = 0;
    virtual void close() = 0;
    /// Since when it has had no request whole; nothing while one is answered.
    [[nodiscard]] virtual std::optional<SteadyClock::time_point> waiting_since() const = 0;
  };
  template <class Transport>
  class Conversation;

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
  std::optional<asio::ssl::context> tls;
  bool accept_paused = false;
  bool stopping = false;

  void accept();
  void admit(Socket socket);
  [[nodiscard]] bool make_room();
  void sweep_later();
};

/// Reads a request, has it answered, writes the response, and again.
template <class Transport>
class HttpServer::State::Conversation final
    : public Connection,
      public std::enable_shared_from_this<HttpServer::State::Conversation<Transport>> {
  static constexpr bool over_tls = std::is_same_v<Transport, TlsSocket>;

 public:
  Conversation(std::shared_ptr<State> server, Transport socket, std::string peer)
      : server_(std::move(server)),
        socket_(std::move(socket)),
        pace_(server_->context),
        peer_(std::move(peer)) {}

  void begin() override {
    since_ = SteadyClock::now();
    if constexpr (over_tls) {
      phase_ = Phase::receiving;
      expires_ = since_ + std::chrono::seconds(server_->limits.handshake_seconds_max);
      socket_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](beast::error_code error) {
                                error ? self->close() : self->read();
                              });
    } else {
      read();
    }
  }

  void sweep(SteadyClock::time_point now) override {
    if (phase_ == Phase::idle && buffer_.size() > 0) {
      phase_ = Phase::receiving;  // a request has begun and does not end
      since_ = now;
      expires_ = now + std::chrono::seconds(server_->limits.request_seconds_max);
    }
    if (phase_ == Phase::streaming) {
      if (writing_ ? now >= expires_ : false) return close();
      if (!writing_) pump(now - wrote_at_ >= keep_alive_every);
      return;
    }
    if (phase_ != Phase::answering && now >= expires_) close();
  }

  void stop() override {
    if (phase_ != Phase::answering && phase_ != Phase::writing) close();
  }

  [[nodiscard]] std::optional<SteadyClock::time_point> waiting_since() const override {
    const bool waits = phase_ == Phase::idle || phase_ == Phase::receiving;
    return waits ? std::optional(since_) : std::nullopt;
  }

  void close() override {
    release_body();
    pace_.cancel();
    request_ = {};
    end_stream();
    beast::error_code ignored;
    auto& lowest = socket_.lowest_layer();
    lowest.shutdown(tcp::socket::shutdown_both, ignored);
    lowest.close(ignored);
    if (server_->connections.erase(this->shared_from_this()) > 0 && server_->metrics != nullptr)
      server_->metrics->connections_closed.add();
  }

 private:
  enum class Phase : std::uint8_t { idle, receiving, answering, writing, streaming };

  void read() {
    if (server_->stopping) return close();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_->limits.header_bytes_max));
    parser_->body_limit(server_->limits.body_bytes_max);
    phase_ = Phase::idle;
    since_ = SteadyClock::now();
    expires_ = since_ + std::chrono::seconds(server_->limits.idle_seconds_max);
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = this->shared_from_this()](
                                beast::error_code error, std::size_t) { self->got_header(error); });
  }

  void got_header(beast::error_code error) {
    if (error) return refuse(error);
    const auto& header = parser_->get();
    // A folded line after it would be part of the name.
    if (header.count(http::field::host) > 1 ||
        header[http::field::host].find(' ') != beast::string_view::npos) {
      return refuse(http::error::bad_field);
    }
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
                       .cookie = std::string(text(header[http::field::cookie])),
                       .fetch_site = std::string(text(header["Sec-Fetch-Site"])),
                       .forwarded_for = forwarded_for(),
                       .accept_encoding = std::string(text(header[http::field::accept_encoding])),
                       .if_none_match = std::string(text(header[http::field::if_none_match])),
                       .last_event_id = std::string(text(header["Last-Event-ID"])),
                       .peer = peer_,
                       .body_bytes = announced()};
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

  /// What the nearest proxy added: lines before the last are somebody else's.
  [[nodiscard]] std::string forwarded_for() const {
    const auto lines = parser_->get().equal_range("X-Forwarded-For");
    return lines.first == lines.second ? "" : std::string(text(std::prev(lines.second)->value()));
  }

  /// The size of the body to come.
  [[nodiscard]] std::size_t announced() const {
    if (parser_->is_done()) return 0;
    const auto length = parser_->content_length();
    return length ? static_cast<std::size_t>(*length) : SIZE_MAX;
  }

  void write_continue() {
    static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(socket_, asio::buffer(go_on),
                      [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                        error ? self->close() : self->read_body();
                      });
  }

  void read_body() {
    http::async_read(socket_, buffer_, *parser_,
                     [self = this->shared_from_this()](beast::error_code error, std::size_t) {
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
        std::move(request_), [self = this->shared_from_this(), here,
                              open = asio::make_work_guard(server_->context)](Response response) {
          // Answers from memory come on this thread, within the call.
          if (std::this_thread::get_id() == here) return self->write(response);
          asio::post(self->server_->context,
                     [self, response = std::move(response)] { self->write(response); });
        });
  }

  void write(const Response& response) {
    if (response.source) return stream(response);
    phase_ = Phase::writing;  // bounded: the client may not read
    expires_ = SteadyClock::now() + std::chrono::seconds(server_->limits.request_seconds_max);
    wire_ = on_the_wire(response, keep_alive_, with_body_);
    asio::async_write(socket_, asio::buffer(wire_),
                      [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                        self->release_body();
                        error || !self->keep_alive_ ? self->finish() : self->read();
                      });
  }

  void stream(const Response& response) {
    wire_ = stream_head(response);
    phase_ = Phase::streaming;
    if (with_body_ && !server_->stopping) {
      source_ = response.source;
      if (server_->metrics != nullptr) server_->metrics->streams_opened.add();
      wait_for_the_end();
      auto woken = std::make_shared<std::atomic_flag>();
      source_->begin([weak = this->weak_from_this(), woken, &context = server_->context] {
        if (woken->test_and_set()) return;
        asio::post(context, [weak, woken] {
          woken->clear();
          if (const auto self = weak.lock()) self->pump(false);
        });
      });
    }
    send({asio::buffer(wire_)});
  }

  /// Writes what there is, if it is time; `anything`: at least a comment.
  void pump(bool anything) {
    if (phase_ != Phase::streaming || writing_ || !source_) return;
    const auto now = SteadyClock::now();
    if (now < next_piece_) {
      if (std::exchange(paced_, true)) return;
      pace_.expires_at(next_piece_);
      pace_.async_wait([weak = this->weak_from_this()](beast::error_code error) {
        const auto self = weak.lock();
        if (!self) return;
        self->paced_ = false;
        if (!error) self->pump(false);
      });
      return;
    }
    pieces_ = source_->take();
    std::vector<asio::const_buffer> buffers;
    buffers.reserve(pieces_.size());
    for (const auto& piece : pieces_) buffers.push_back(asio::buffer(*piece));
    if (buffers.empty() && anything) buffers.push_back(asio::buffer(keep_alive_comment));
    if (buffers.empty()) return;
    next_piece_ = now + piece_every;
    send(buffers);
  }

  void send(const std::vector<asio::const_buffer>& buffers) {
    writing_ = true;
    wrote_at_ = SteadyClock::now();
    expires_ = wrote_at_ + std::chrono::seconds(server_->limits.request_seconds_max);
    asio::async_write(socket_, buffers,
                      [self = this->shared_from_this()](beast::error_code error, std::size_t) {
                        self->writing_ = false;
                        self->pieces_.clear();
                        error || !self->source_ ? self->finish() : self->pump(false);
                      });
  }

  /// A client that hangs up is noticed by reading; what it sends instead is of no interest.
  void wait_for_the_end() {
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(1'024), [self = this->shared_from_this()](
                                                        beast::error_code error, std::size_t) {
      error ? self->close() : self->wait_for_the_end();
    });
  }

  void end_stream() {
    if (!std::exchange(source_, nullptr)) return;
    if (server_->metrics != nullptr) server_->metrics->streams_closed.add();
  }

  /// Says good-bye as the transport wants it.
  void finish() {
    if constexpr (over_tls) {
      phase_ = Phase::receiving;
      expires_ = SteadyClock::now() + std::chrono::seconds(5);
      end_stream();
      socket_.async_shutdown(
          [self = this->shared_from_this()](beast::error_code) { self->close(); });
    } else {
      close();
    }
  }

  /// Says why, and hangs up: what follows on this connection cannot be understood.
  void write_last(const Response& response) {
    phase_ = Phase::receiving;  // bounded: the client may not read
    expires_ = SteadyClock::now() + std::chrono::seconds(5);
    wire_ = on_the_wire(response, false, with_body_);
    asio::async_write(
        socket_, asio::buffer(wire_),
        [self = this->shared_from_this()](beast::error_code, std::size_t) { self->drain(); });
  }

  /// Reads what the client still sends for a moment; closing at once would reset the connection and
  /// take the response with it.
  void drain() {
    beast::error_code ignored;
    if constexpr (over_tls) {
      return finish();
    } else {
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
    }
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(65'536), [self = this->shared_from_this()](
                                                         beast::error_code error, std::size_t) {
      error ? self->close() : self->drain();
    });
  }

  void release_body() { server_->bodies_bytes -= std::exchange(reserved_, 0); }

  std::shared_ptr<State> server_;
  Transport socket_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  std::string wire_;
  Phase phase_ = Phase::idle;
  SteadyClock::time_point since_;
  SteadyClock::time_point expires_;

  // Of a stream:
  std::shared_ptr<BodySource> source_;
  std::vector<BodySource::Piece> pieces_;  ///< Under way.
  asio::steady_timer pace_;
  SteadyClock::time_point next_piece_;
  SteadyClock::time_point wrote_at_;
  bool writing_ = false;
  bool paced_ = false;

  std::string peer_;
  std::size_t reserved_ = 0;
  bool keep_alive_ = false;
  bool with_body_ = true;
};

void HttpServer::State::accept() {
  acceptor.async_accept([self = shared_from_this()](beast::error_code error, Socket socket) {
    if (error == asio::error::operation_aborted || self->stopping) return;
    if (!error && self->make_room()) {
      self->admit(std::move(socket));
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

void HttpServer::State::admit(Socket socket) {
  beast::error_code error;
  socket.set_option(tcp::no_delay(true), error);
  const auto end = socket.remote_endpoint(error);
  if (error) return;  // gone already
  auto peer = end.address().to_string();
  std::shared_ptr<Connection> connection;
  if (tls) {
    connection = std::make_shared<Conversation<TlsSocket>>(
        shared_from_this(), TlsSocket(std::move(socket), *tls), std::move(peer));
  } else {
    connection = std::make_shared<Conversation<Socket>>(shared_from_this(), std::move(socket),
                                                        std::move(peer));
  }
  connections.insert(connection);
  if (metrics != nullptr) metrics->connections_opened.add();
  connection->begin();
}

/// True if one more connection may be had. When all are taken, the one goes that has been without a
/// whole request for longest: somebody who only holds connections open keeps nobody out.
bool HttpServer::State::make_room() {
  if (connections.size() < limits.connections_max) return true;
  std::shared_ptr<Connection> longest;
  auto earliest = SteadyClock::time_point::max();
  for (const auto& connection : connections) {
    const auto since = connection->waiting_since();
    if (!since || *since >= earliest) continue;
    earliest = *since;
    longest = connection;
  }
  if (!longest) return false;
  longest->close();
  return true;
}

void HttpServer::State::sweep_later() {
  sweep.expires_after(std::chrono::seconds(1));
  sweep.async_wait([self = this->shared_from_this()](beast::error_code) {
    if (self->stopping && self->connections.empty()) return;
    const auto now = SteadyClock::now();
    const auto open = self->connections;  // closing one erases it
    for (const auto& connection : open) connection->sweep(now);
    if (std::exchange(self->accept_paused, false) && !self->stopping) self->accept();
    self->sweep_later();
  });
}

namespace {

Result<void> use_files(asio::ssl::context& context, const TlsFiles& files) {
  beast::error_code error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.use_certificate_chain_file(files.certificate.string(), error);
  if (error) {
    return Error{
        ErrorCode::invalid,
        "the certificate " + files.certificate.string() + " cannot be used: " + error.message(),
        "tls_cert"};
  }
  context.use_private_key_file(files.key.string(), asio::ssl::context::pem, error);
  if (error) {
    return Error{ErrorCode::invalid,
                 "the key " + files.key.string() + " cannot be used: " + error.message(),
                 "tls_key"};
  }
  return {};
}

}  // namespace

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() {
  stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(
    asio::io_context& context, const std::string& address, std::uint16_t port, Admission admission,
    Handler handler, const std::optional<TlsFiles>& tls, ServerLimits limits, Metrics* metrics) {
  beast::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error) {
    return Error{ErrorCode::invalid, address + " is no IP address", "bind"};
  }
  auto state =
      std::make_shared<State>(context, std::move(admission), std::move(handler), limits, metrics);
  if (tls) {
    state->tls.emplace(asio::ssl::context::tls_server);
    if (auto ready = use_files(*state->tls, *tls); !ready) return ready.error();
  }
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
  return (state_->tls ? "https://" : "http://") +
         (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" +
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
