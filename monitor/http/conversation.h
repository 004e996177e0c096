/// \file
/// One client's connection: requests in, responses out. Of the server's thread alone.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <charconv>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/long_poll.h"
#include "http/beast_parser.h"
#include "http/framing.h"
#include "http/response_head.h"
#include "http/server_state.h"

namespace watchdog::monitor::web {

namespace beast = boost::beast;
namespace http = beast::http;

inline std::string_view text(beast::string_view view) {
  return {view.data(), view.size()};
}

inline Method method_of(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::get;
    case http::verb::head:
      return Method::head;
    case http::verb::post:
      return Method::post;
    case http::verb::patch:
      return Method::patch;
    case http::verb::delete_:
      return Method::del;
    default:
      return Method::other;
  }
}

/// How much of a refused client's data is read. More is not worth the answer that may get lost.
inline constexpr std::size_t drained_bytes_max = 16 * 1024 * 1024;

/// The shortest time between two writes to a client.
inline constexpr std::chrono::milliseconds piece_every{5};
/// A comment shows proxies and clients that a quiet stream still lives.
inline constexpr std::chrono::seconds keep_alive_every{15};
inline constexpr std::string_view keep_alive_comment = ": keep-alive\n\n";
/// Browsers come by HTTPS alone from then on.
inline constexpr std::string_view stays_secure_line =
    "Strict-Transport-Security: max-age=31536000\r\n";
inline constexpr std::string_view not_allowed_comment =
    ": the token or login that opened this stream is not valid any more\n\n";

/// The source of a connection. A plain value.
struct Peer {
  std::string address;  ///< Without its port.
  std::uint16_t port = 0;
  std::uint16_t own_port = 0;  ///< Where it came in.
};

/// Reads a request, has it answered, writes the response, and again.
template <class Transport>
class Conversation final : public Connection,
                           public std::enable_shared_from_this<Conversation<Transport>> {
  static constexpr bool over_tls = std::is_same_v<Transport, TlsSocket>;

 public:
  Conversation(std::shared_ptr<HttpServer::State> server, Transport socket, Peer peer)
      : server_(std::move(server)),
        socket_(std::move(socket)),
        buffer_(server_->limits.header_bytes_max),
        pace_(server_->context),
        peer_(std::move(peer)) {}

  void begin() override {
    since_ = SteadyClock::now();
    if constexpr (over_tls) {
      phase_ = Phase::receiving;
      expires_ = since_ + std::chrono::seconds(server_->limits.handshake_seconds_max);
      socket_.async_handshake(asio::ssl::stream_base::server,
                              then([](Conversation& self, beast::error_code error) {
                                error ? self.close() : self.read();
                              }));
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
      if (writing_ && now >= expires_) return close();
      return attempt([&] { sweep_stream(now); });
    }
    if (phase_ != Phase::answering && now >= expires_) close();
  }

  void stop() override {
    const bool answers = phase_ == Phase::answering || phase_ == Phase::writing ||
                         (phase_ == Phase::streaming && ends_);
    if (auto* poll = long_poll()) poll->hurry();
    if (answers) return;
    if (!begins()) return close();
    expires_ = std::min(expires_, SteadyClock::now() + farewell);
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
  /// How long a request that has begun may take at a stop.
  static constexpr std::chrono::seconds farewell{2};
  enum class Phase : std::uint8_t { idle, receiving, answering, writing, streaming };

  /// The first request of a connection may be on its way: a client that was let in at a port that
  /// stays open counts on an answer. Later ones of a connection may be sent again by their clients.
  [[nodiscard]] bool begins() const {
    const bool unasked = phase_ == Phase::idle && requests_ <= 1;
    return server_->inherited && (unasked || phase_ == Phase::receiving);
  }

  void read() {
    ++requests_;
    phase_ = Phase::idle;
    if (server_->stopping && !begins()) return close();
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_->limits.header_bytes_max));
    parser_->body_limit(server_->limits.body_bytes_max);
    phase_ = Phase::idle;
    since_ = SteadyClock::now();
    expires_ = server_->stopping ? since_ + farewell
                                 : since_ + std::chrono::seconds(server_->limits.idle_seconds_max);
    read_header();
  }

  /// Parses the received bytes, and then reads more, as Beast's own function does at twice the
  /// cost.
  void read_header() {
    beast::error_code error;
    if (buffer_.size() > 0) {
      buffer_.consume(parser_->put(buffer_.data(), error));
      if (error && error != http::error::need_more) return refuse(error);
      if (parser_->is_header_done()) return got_header();
    }
    // Most clients that are connected wait: their connections keep little memory.
    receive(std::max<std::size_t>(512, buffer_.capacity() - buffer_.size()),
            &Conversation::read_header);
  }

  /// Reads at most this many bytes more, as far as there is room, and goes on.
  void receive(std::size_t bytes_max, void (Conversation::*go_on)()) {
    const auto room = std::min(bytes_max, buffer_.max_size() - buffer_.size());
    if (room == 0) return refuse(http::error::buffer_overflow);
    socket_.async_read_some(
        buffer_.prepare(room),
        then([go_on](Conversation& self, beast::error_code failed, std::size_t bytes) {
          if (failed) return self.close();
          self.buffer_.commit(bytes);
          (self.*go_on)();
        }));
  }

  void got_header() {
    const auto& header = parser_->get();
    // A folded line after it would be part of the name.
    if (header.count(http::field::host) > 1 ||
        header[http::field::host].find(' ') != beast::string_view::npos) {
      return refuse(http::error::bad_field);
    }
    if (!is_framing_known(header)) return refuse(http::error::bad_transfer_encoding);
    with_body_ = header.method() != http::verb::head;
    knows_chunks_ = header.version() >= 11;
    // It applies to all ports of a name. Developers use localhost for other servers too.
    stays_secure_ =
        over_tls && !beast::iequals(header[http::field::host].substr(0, 9), "localhost");
    request_ = Request{.method = method_of(header.method()),
                       .target = std::string(text(header.target())),
                       .peer = peer_.address,
                       .peer_port = peer_.port,
                       .own_port = peer_.own_port,
                       .body_bytes = announced()};
    take_fields(header);
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
    received_ = 0;
    parser_->eager(true);  // all that came in one step
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue"))
      return write_continue();
    read_body();
  }

  /// Of several lines the first counts. The nearest proxy writes the last X-Forwarded-For: those
  /// before may be of other parties.
  void take_fields(const http::fields& header) {
    struct Field {
      std::string_view name;
      std::string Request::*into;
      bool is_last = false;
    };
    static constexpr std::array fields{Field{"Host", &Request::host},
                                       Field{"Origin", &Request::origin},
                                       Field{"Authorization", &Request::authorization},
                                       Field{"Cookie", &Request::cookie},
                                       Field{"Sec-Fetch-Site", &Request::fetch_site},
                                       Field{"X-Forwarded-For", &Request::forwarded_for, true},
                                       Field{"Accept", &Request::accept},
                                       Field{"Accept-Encoding", &Request::accept_encoding},
                                       Field{"Content-Type", &Request::content_type},
                                       Field{"Content-Encoding", &Request::content_encoding},
                                       Field{"If-None-Match", &Request::if_none_match},
                                       Field{"Last-Event-ID", &Request::last_event_id},
                                       Field{"X-Watchdog-Session", &Request::session},
                                       Field{"Mcp-Session-Id", &Request::mcp_session},
                                       Field{"MCP-Protocol-Version", &Request::mcp_version},
                                       Field{"Mcp-Method", &Request::mcp_method},
                                       Field{"Mcp-Name", &Request::mcp_name}};
    std::array<bool, fields.size()> taken{};
    for (const auto& line : header) {
      for (std::size_t at = 0; at < fields.size(); ++at) {
        const auto& [name, into, is_last] = fields[at];
        if (!beast::iequals(line.name_string(), {name.data(), name.size()})) continue;
        if (is_last || !std::exchange(taken[at], true)) request_.*into = text(line.value());
        break;
      }
    }
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
                      then([](Conversation& self, beast::error_code error) {
                        error ? self.close() : self.read_body();
                      }));
  }

  /// Parses the received bytes, and then reads more. Beast's own loop does not report how many that
  /// were.
  void read_body() {
    const auto& limits = server_->limits;
    beast::error_code error;
    while (!parser_->is_done() && buffer_.size() > 0) {
      const auto parsed = parser_->put(buffer_.data(), error);
      buffer_.consume(parsed);
      received_ += parsed;
      if (error && error != http::error::need_more) return refuse(error);
      if (error || parsed == 0) break;
    }
    if (parser_->is_done()) return answer();
    // Tiny chunks are mostly framing.
    if (received_ > limits.body_bytes_max + limits.header_bytes_max)
      return refuse(http::error::body_limit);
    receive(buffer_.max_size(), &Conversation::read_body);
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
    if (error == http::error::buffer_overflow) {
      return write_last(error_response(431, "exhausted",
                                       "a chunk's extension and the trailers may have at most " +
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
          if (std::this_thread::get_id() == here) return self->reply(std::move(response));
          asio::post(self->server_->context, [self, response = std::move(response)]() mutable {
            self->attempt([&] { self->reply(std::move(response)); });
          });
        });
  }

  /// The answer to what was asked; none if the connection was given up meanwhile.
  void reply(Response response) {
    if (phase_ == Phase::answering) write(std::move(response));
  }

  void write(Response response) {
    if (response.source) return stream(std::move(response));
    phase_ = Phase::writing;  // bounded: the client may not read
    expires_ = SteadyClock::now() + std::chrono::seconds(server_->limits.request_seconds_max);
    const auto buffers = put_on_the_wire(std::move(response), keep_alive_);
    auto written = then([](Conversation& self, beast::error_code error) {
      self.release_body();
      error || !self.keep_alive_ ? self.finish() : self.read();
    });
    // One buffer costs the kernel less than a list.
    long_body_.empty() ? asio::async_write(socket_, buffers.front(), std::move(written))
                       : asio::async_write(socket_, buffers, std::move(written));
  }

  std::array<asio::const_buffer, 2> put_on_the_wire(Response response, bool keep_alive) {
    if (stays_secure_) response.extra_headers.append(stays_secure_line);
    wire_ = response_head(response, keep_alive);
    long_body_.clear();
    if (with_body_ && response.body.size() <= copied_body_bytes_max) {
      wire_.append(response.body);
    } else if (with_body_) {
      long_body_ = std::move(response.body);
    }
    return {asio::buffer(wire_), asio::buffer(long_body_)};
  }

  void stream(Response response) {
    ends_ = response.ends;
    chunked_ = ends_ && knows_chunks_;
    last_ = false;
    keep_alive_ = keep_alive_ && chunked_ && with_body_;
    if (stays_secure_) response.extra_headers.append(stays_secure_line);
    wire_ = pieces_head(response, chunked_, keep_alive_);
    phase_ = Phase::streaming;
    if (with_body_ && (ends_ || !server_->stopping)) {
      source_ = response.source;
      if (!ends_) {
        if (server_->metrics != nullptr) server_->metrics->streams_opened.add();
        wait_for_the_end();
      }
      auto woken = std::make_shared<std::atomic_flag>();
      source_->begin([weak = this->weak_from_this(), woken, &context = server_->context] {
        if (woken->test_and_set()) return;
        asio::post(context, [weak, woken] {
          woken->clear();
          if (const auto self = weak.lock()) self->attempt([&] { self->pump(false); });
        });
      });
      if (auto* poll = server_->stopping ? long_poll() : nullptr) poll->hurry();
    }
    send({asio::buffer(wire_)});
  }

  void sweep_stream(SteadyClock::time_point now) {
    if (source_ && !source_->allowed()) {
      if (writing_ || ends_) return close();
      end_stream();
      return send({asio::buffer(not_allowed_comment)});
    }
    if (!writing_ && !ends_) return pump(now - wrote_at_ >= keep_alive_every);
    if (long_poll() != nullptr && !writing_ && has_hung_up()) close();
  }

  /// The answer under way, if it is one that comes late; else null.
  [[nodiscard]] LongPoll* long_poll() const { return dynamic_cast<LongPoll*>(source_.get()); }

  /// Returns whether the client closed a connection from which nothing is read at the moment.
  [[nodiscard]] bool has_hung_up() {
    char byte = 0;
    return recv(socket_.lowest_layer().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  }

  /// Writes what there is, if it is time; `anything`: at least a comment.
  void pump(bool anything) {
    if (phase_ != Phase::streaming || writing_ || !source_) return;
    const auto now = SteadyClock::now();
    if (!ends_ && now < next_piece_) return pump_later();
    pieces_ = source_->drain();
    const auto state = source_->state();
    if (state == BodyState::broken) return close();  // without its last chunk
    last_ = state == BodyState::complete;
    std::vector<asio::const_buffer> buffers;
    if (chunked_) {
      put_in_chunks();
      if (!wire_.empty()) buffers.push_back(asio::buffer(wire_));
    } else {
      buffers.reserve(pieces_.size());
      for (const auto& piece : pieces_) buffers.push_back(asio::buffer(*piece));
    }
    if (buffers.empty() && anything) buffers.push_back(asio::buffer(keep_alive_comment));
    if (buffers.empty() && !last_) return;
    next_piece_ = now + piece_every;
    send(buffers);
  }

  void pump_later() {
    if (std::exchange(paced_, true)) return;
    pace_.expires_at(next_piece_);
    pace_.async_wait([weak = this->weak_from_this()](beast::error_code error) {
      const auto self = weak.lock();
      if (!self) return;
      self->paced_ = false;
      if (!error) self->attempt([&] { self->pump(false); });
    });
  }

  void put_in_chunks() {
    wire_.clear();
    for (const auto& piece : pieces_) {
      if (piece->empty()) continue;  // would be the last one
      std::array<char, 16> size{};
      const auto end = std::to_chars(size.begin(), size.end(), piece->size(), 16).ptr;
      wire_.append(size.begin(), end).append("\r\n").append(*piece).append("\r\n");
    }
    pieces_.clear();
    if (last_) wire_.append("0\r\n\r\n");
  }

  void send(const std::vector<asio::const_buffer>& buffers) {
    writing_ = true;
    wrote_at_ = SteadyClock::now();
    expires_ = wrote_at_ + std::chrono::seconds(server_->limits.request_seconds_max);
    asio::async_write(socket_, buffers, then([](Conversation& self, beast::error_code error) {
                        self.writing_ = false;
                        self.pieces_.clear();
                        if (error || !self.source_) return self.finish();
                        self.last_ ? self.end_of_pieces() : self.pump(false);
                      }));
  }

  void end_of_pieces() {
    end_stream();
    release_body();
    keep_alive_ ? read() : finish();
  }

  /// A client that hangs up is noticed by reading; what it sends instead is of no interest.
  void wait_for_the_end() {
    buffer_.clear();
    socket_.async_read_some(buffer_.prepare(1'024),
                            then([](Conversation& self, beast::error_code error) {
                              error ? self.close() : self.wait_for_the_end();
                            }));
  }

  void end_stream() {
    if (!std::exchange(source_, nullptr) || ends_) return;
    if (server_->metrics != nullptr) server_->metrics->streams_closed.add();
  }

  /// Says good-bye as the transport wants it.
  void finish() {
    if constexpr (over_tls) {
      phase_ = Phase::receiving;
      expires_ = SteadyClock::now() + std::chrono::seconds(5);
      end_stream();
      socket_.async_shutdown(then([](Conversation& self, beast::error_code) { self.close(); }));
    } else {
      close();
    }
  }

  /// Says why, and hangs up: what follows on this connection cannot be understood.
  void write_last(Response response) {
    phase_ = Phase::receiving;  // bounded: the client may not read
    expires_ = SteadyClock::now() + std::chrono::seconds(5);
    received_ = 0;
    const auto buffers = put_on_the_wire(std::move(response), false);
    asio::async_write(socket_, buffers,
                      then([](Conversation& self, beast::error_code) { self.drain(); }));
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
    socket_.async_read_some(
        buffer_.prepare(buffer_.max_size()),
        then([](Conversation& self, beast::error_code error, std::size_t bytes) {
          self.received_ += bytes;
          error || self.received_ > drained_bytes_max ? self.close() : self.drain();
        }));
  }

  /// A handler that keeps the connection alive for as long as it waits.
  template <class Step>
  auto then(Step step) {
    return [self = this->shared_from_this(), step](beast::error_code error, std::size_t bytes = 0) {
      self->attempt([&] {
        if constexpr (std::is_invocable_v<Step, Conversation&, beast::error_code, std::size_t>) {
          step(*self, error, bytes);
        } else {
          step(*self, error);
        }
      });
    };
  }

  /// Runs a step. If no memory is left for it, the request fails and nothing else does.
  template <class Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (const std::bad_alloc&) {
      give_up();
    }
  }

  void give_up() {
    const bool unanswered =
        phase_ == Phase::idle || phase_ == Phase::receiving || phase_ == Phase::answering;
    release_body();
    parser_.reset();
    request_ = {};
    try {
      if (unanswered) {
        return write_last(
            error_response(503, "unavailable", "no memory is left for this request; try again"));
      }
    } catch (const std::bad_alloc&) {
    }
    close();
  }

  void release_body() { server_->bodies_bytes -= std::exchange(reserved_, 0); }

  std::shared_ptr<HttpServer::State> server_;
  Transport socket_;
  /// Bounded like headers. Data that does not fit is a chunk's extension or a trailer: a body
  /// leaves it as it comes.
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  std::string wire_;
  std::string long_body_;     ///< Written after `wire_`.
  std::size_t received_ = 0;  ///< Of the body, with the framing of its chunks; or while draining.
  Phase phase_ = Phase::idle;
  int requests_ = 0;  ///< Begun on this connection.
  SteadyClock::time_point since_;
  SteadyClock::time_point expires_;

  // Of a body in pieces:
  std::shared_ptr<BodySource> source_;
  bool ends_ = false;  ///< The body has an end: nothing else may be written.
  bool chunked_ = false;
  bool last_ = false;                      ///< The running write is the body's end.
  std::vector<BodySource::Piece> pieces_;  ///< Under way.
  asio::steady_timer pace_;
  SteadyClock::time_point next_piece_;
  SteadyClock::time_point wrote_at_;
  bool writing_ = false;
  bool paced_ = false;

  Peer peer_;
  std::size_t reserved_ = 0;
  bool keep_alive_ = false;
  bool with_body_ = true;
  bool knows_chunks_ = true;
  bool stays_secure_ = false;
};

}  // namespace watchdog::monitor::web
