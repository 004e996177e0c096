// The thread that asks runs its connection's event loop. `run` begins one operation and returns
// when it is done. A stop or a timer closes the socket, which ends any operation; `closed_` keeps
// the reason. A kept connection that ends before a byte came is stale, and the request is sent once
// more on a new one. A name look-up cannot be interrupted, so a detached thread waits for it.

// Before Boost 1.86 Beast's parser asserts that the end of an empty chunked body comes in one
// piece. A server that sends it in several would end a program that is built without NDEBUG.
#ifndef BOOST_DISABLE_ASSERTS
#define BOOST_DISABLE_ASSERTS
#endif

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <mutex>
#include <thread>

#include "net/http_client.h"

namespace watchdog {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using ErrorOf = boost::system::error_code;

constexpr std::size_t head_bytes_max = 65'536;
constexpr int interim_answers_max = 16;

/// How much of an unwanted rest of an answer is read, so that the connection can be reused.
constexpr std::size_t rest_bytes_max = 65'536;
constexpr std::chrono::milliseconds rest_wait{200};

std::string_view text(beast::string_view piece) {
  return {piece.data(), piece.size()};
}

/// Receives the body of an answer.
struct Receiver {
  const HttpSink* sink = nullptr;
  const HttpHead* head = nullptr;
  std::function<void()> on_enough;
  std::size_t rest_bytes = 0;
  bool enough = false;

  /// Returns false if the unwanted rest is too large.
  bool receive(std::string_view piece) {
    if (enough) return (rest_bytes += piece.size()) <= rest_bytes_max;
    if (!(*sink)(*head, piece)) {
      enough = true;
      on_enough();
    }
    return true;
  }
};

/// A body as Beast's parser wants it: hands on what it gets and keeps nothing.
struct PiecewiseBody {
  using value_type = Receiver;

  class reader {  // NOLINT(readability-identifier-naming): Beast's name for it
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>& /*header*/, Receiver& receiver)
        : receiver_(receiver) {}
    void init(const boost::optional<std::uint64_t>& /*length*/, ErrorOf& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, ErrorOf& error) {
      error = {};
      std::size_t bytes = 0;
      for (const asio::const_buffer piece : beast::buffers_range_ref(buffers)) {
        bytes += piece.size();
        if (receiver_.receive({static_cast<const char*>(piece.data()), piece.size()})) continue;
        error = asio::error::message_size;
        break;
      }
      return bytes;
    }
    void finish(ErrorOf& error) { error = {}; }

   private:
    Receiver& receiver_;
  };
};

bool is_public(const asio::ip::address& address) {
  if (address.is_v6() && !address.to_v6().is_v4_mapped()) {
    const auto v6 = address.to_v6();
    const bool unique_local = (v6.to_bytes()[0] & 0xFEU) == 0xFCU;
    return !v6.is_loopback() && !v6.is_link_local() && !v6.is_unspecified() && !unique_local;
  }
  const auto v4 = address.is_v4() ? address.to_v4()
                                  : asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  const auto byte = v4.to_bytes();
  return !v4.is_loopback() && !v4.is_unspecified() && byte[0] != 10 &&
         !(byte[0] == 172 && byte[1] >= 16 && byte[1] < 32) &&
         !(byte[0] == 192 && byte[1] == 168) && !(byte[0] == 169 && byte[1] == 254) &&
         !(byte[0] == 100 && byte[1] >= 64 && byte[1] < 128);
}

/// A peer that lost its power sends nothing: the kernel probes the peer's kernel, which answers
/// however busy the program is.
void probe_when_silent(tcp::socket& socket) {
  ErrorOf ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const std::array<std::pair<int, int>, 3> settings{
      {{TCP_KEEPIDLE, 60}, {TCP_KEEPINTVL, 30}, {TCP_KEEPCNT, 10}}};
  for (const auto& [name, value] : settings)
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, name, &value, sizeof value);
}

std::string on_the_wire(const HttpRequest& request, const Url& server) {
  std::string wire(request.method);
  wire.append(" ").append(request.target).append(" HTTP/1.1\r\nHost: ").append(server.authority());
  wire.append("\r\nUser-Agent: libwatchdog\r\n");
  for (const auto& [name, value] : request.headers)
    wire.append(name).append(": ").append(value).append("\r\n");
  if (!request.body.empty())
    wire.append("Content-Length: ").append(std::to_string(request.body.size())).append("\r\n");
  return wire.append("\r\n");
}

/// Beast takes `gzip, chunked` for `chunked`.
bool is_framing_known(const http::response_header<>& head) {
  const auto codings = head.count(http::field::transfer_encoding);
  return codings == 0 ||
         (codings == 1 && beast::iequals(head[http::field::transfer_encoding], "chunked"));
}

/// True if nothing is to come over the connection after it.
bool is_last(const HttpRequest& request) {
  return std::ranges::any_of(request.headers, [](const auto& header) {
    return header.first == "Connection" && header.second == "close";
  });
}

/// One connection, driven by the thread that asks: each operation is begun and run to its end.
class Connection {
 public:
  Connection(const Url& server, asio::ssl::context* trust, const HttpClient::Options& options)
      : server_(server), trust_(trust), fault_of_local_(options.fault_of_local) {}

  struct Answer {
    Result<HttpHead, HttpFault> head;
    bool nothing_came = true;  ///< Not a byte of it.
    bool reusable = false;
  };

  Answer ask(const HttpRequest& request, const HttpSink& sink, const std::stop_token& stop) {
    Answer answer = [&] {
      const std::stop_callback on_stop(
          stop, [this] { asio::post(context_, [this] { close(HttpTrouble::cancelled); }); });
      if (request.at_most) close_after(*request.at_most, HttpTrouble::late);
      return carry_out(request, sink);
    }();
    timer_.cancel();
    if (!abandoned()) {  // what was posted meanwhile
      context_.restart();
      context_.poll();
    }
    answer.reusable = answer.reusable && !closed_ && !stop.stop_requested();
    return answer;
  }

  /// A look-up is under way that cannot be broken off; destroying this waits for it.
  [[nodiscard]] bool abandoned() const { return looking_up_; }

  /// False: the server closed it, or sent what nobody asked for. It must not answer the next
  /// request.
  [[nodiscard]] bool is_quiet() {
    pollfd fd{socket_.native_handle(), POLLIN, 0};
    return poll(&fd, 1, 0) == 0;
  }

 private:
  Answer carry_out(const HttpRequest& request, const HttpSink& sink) {
    if (!connected_) {
      if (auto fault = connect()) return {.head = std::move(*fault)};
    }
    const std::string wire = on_the_wire(request, server_);
    const std::array<asio::const_buffer, 2> all{asio::buffer(wire), asio::buffer(request.body)};
    const ErrorOf unsent =
        run([&](auto done) { with_stream([&](auto& s) { asio::async_write(s, all, done); }); });

    // Even if not all could be sent: the server may have answered before it closed.
    HttpHead head;
    Receiver receiver{.sink = &sink, .head = &head};
    receiver.on_enough = [this, last = is_last(request)] {
      last ? close(HttpTrouble::late) : close_after(rest_wait, HttpTrouble::late);
    };
    for (int interim = 0; interim < interim_answers_max; ++interim) {
      http::response_parser<PiecewiseBody> parser;
      parser.header_limit(head_bytes_max);
      parser.body_limit(boost::none);
      parser.get().body() = receiver;
      ErrorOf error = run([&](auto done) {
        with_stream([&](auto& s) { http::async_read_header(s, buffer_, parser, done); });
      });
      const bool nothing_came = interim == 0 && !parser.got_some() && buffer_.size() == 0;
      if (error) {
        return {.head = fault_of(unsent && nothing_came ? unsent : error, nothing_came),
                .nothing_came = nothing_came};
      }
      if (parser.get().result_int() / 100 == 1) continue;
      if (!is_framing_known(parser.get())) {
        return {
            .head = HttpFault{HttpTrouble::malformed, "its answer has an unknown transfer coding"},
            .nothing_came = false};
      }
      fill(head, parser.get());
      if (!parser.is_done()) {
        error = run([&](auto done) {
          with_stream([&](auto& s) { http::async_read(s, buffer_, parser, done); });
        });
      }
      if (error && !parser.get().body().enough)
        return {.head = fault_of(error, false), .nothing_came = false};
      return {.head = std::move(head),
              .nothing_came = false,
              .reusable = !error && !unsent && parser.keep_alive() && buffer_.size() == 0};
    }
    return {.head = HttpFault{HttpTrouble::malformed, "it sends interim answers only"},
            .nothing_came = false};
  }

  std::optional<HttpFault> connect() {
    ErrorOf error;
    std::vector<tcp::endpoint> addresses;
    if (const auto literal = asio::ip::make_address(server_.host, error); !error) {
      addresses.emplace_back(literal, static_cast<std::uint16_t>(std::stoi(server_.port)));
    } else {
      looking_up_ = true;
      error = run([&](auto done) {
        resolver_.async_resolve(
            server_.host, server_.port,
            [this, &addresses, done](ErrorOf failed, const auto& found) mutable {
              looking_up_ = false;
              for (const auto& entry : found) addresses.push_back(entry.endpoint());
              done(failed, 0);
            });
      });
      if (error) return fault_of_look_up(error);
    }
    error = run([&](auto done) {
      asio::async_connect(socket_, addresses,
                          [done](ErrorOf failed, const auto&) mutable { done(failed, 0); });
    });
    if (closed_) return HttpFault{*closed_, "no connection came about"};
    if (error) return HttpFault{HttpTrouble::refused, error.message()};
    ErrorOf ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    probe_when_silent(socket_);
    const auto peer = socket_.remote_endpoint(ignored);
    from_internet_ = is_public(peer.address());
    const bool is_local =
        peer.address().is_loopback() || peer.address() == socket_.local_endpoint(ignored).address();
    if (is_local && fault_of_local_) {
      auto fault = fault_of_local_(peer.address().to_string(), peer.port());
      if (!fault.empty()) return HttpFault{HttpTrouble::untrusted, std::move(fault)};
    }
    connected_ = true;
    return trust_ == nullptr ? std::nullopt : shake_hands();
  }

  std::optional<HttpFault> shake_hands() {
    tls_.emplace(socket_, *trust_);
    SSL* const ssl = tls_->native_handle();
    ErrorOf no_address;
    asio::ip::make_address(server_.host, no_address);
    if (no_address) {
      SSL_set_tlsext_host_name(ssl, server_.host.c_str());
      SSL_set1_host(ssl, server_.host.c_str());
    } else {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server_.host.c_str());
    }
    const ErrorOf error = run([&](auto done) {
      tls_->async_handshake(asio::ssl::stream_base::client,
                            [done](ErrorOf failed) mutable { done(failed, 0); });
    });
    if (!error) return std::nullopt;
    if (closed_) return HttpFault{*closed_, "the TLS handshake did not end"};
    if (const long verdict = SSL_get_verify_result(ssl); verdict != X509_V_OK) {
      return HttpFault{HttpTrouble::untrusted, std::string("its certificate is refused: ") +
                                                   X509_verify_cert_error_string(verdict)};
    }
    if (error == asio::error::eof || error == asio::error::connection_reset ||
        error == asio::ssl::error::stream_truncated) {
      return HttpFault{HttpTrouble::lost, "it hung up during the TLS handshake"};
    }
    return HttpFault{HttpTrouble::untrusted, "TLS failed: " + error.message()};
  }

  [[nodiscard]] HttpFault fault_of_look_up(const ErrorOf& error) const {
    if (closed_) return {*closed_, "its name was still being looked up"};
    const bool later = error == asio::error::host_not_found_try_again;
    return {later ? HttpTrouble::no_name_service : HttpTrouble::host_not_found, error.message()};
  }

  [[nodiscard]] HttpFault fault_of(const ErrorOf& error, bool nothing_came) const {
    if (closed_) return {*closed_, "its answer had not ended"};
    const bool ended = error == asio::error::eof || error == http::error::end_of_stream ||
                       error == http::error::partial_message ||
                       error == asio::ssl::error::stream_truncated;
    if (ended) {
      return {HttpTrouble::lost, nothing_came ? "it closed the connection without an answer"
                                              : "it closed the connection in mid-answer"};
    }
    const ErrorOf of_http = http::make_error_code(http::error::bad_version);
    if (error == http::error::header_limit) {
      return {HttpTrouble::malformed,
              "the head of its answer is above " + std::to_string(head_bytes_max) + " bytes"};
    }
    if (error == http::error::buffer_overflow) {
      return {HttpTrouble::malformed,
              "a chunk's extension or the trailers of its answer are above " +
                  std::to_string(head_bytes_max) + " bytes"};
    }
    if (error.category() == of_http.category())
      return {HttpTrouble::malformed, "its answer is no HTTP: " + error.message()};
    return {HttpTrouble::lost, error.message()};
  }

  void fill(HttpHead& head, const http::response_header<>& from) const {
    head.status = static_cast<int>(from.result_int());
    head.from_internet = from_internet_;
    for (const auto& field : from)
      head.headers.emplace_back(text(field.name_string()), text(field.value()));
  }

  void with_stream(const auto& use) { tls_ ? use(*tls_) : use(socket_); }

  /// Begins an operation and runs until it is done. A look-up that is closed meanwhile goes on
  /// without anybody waiting for it.
  ErrorOf run(const auto& begin) {
    if (closed_) return asio::error::operation_aborted;
    std::optional<ErrorOf> result;
    begin([&result](ErrorOf error, std::size_t) { result = error; });
    context_.restart();
    while (!result && !(closed_ && looking_up_) && context_.run_one() > 0) {
    }
    return result.value_or(asio::error::operation_aborted);
  }

  void close_after(Millis time, HttpTrouble why) {
    timer_.expires_after(time);
    timer_.async_wait([this, why](ErrorOf error) {
      if (!error) close(why);
    });
  }

  void close(HttpTrouble why) {
    if (closed_) return;
    closed_ = why;
    ErrorOf ignored;
    socket_.close(ignored);
  }

  const Url& server_;
  asio::ssl::context* trust_;
  const std::function<std::string(const std::string&, std::uint16_t)>& fault_of_local_;
  asio::io_context context_{1};
  asio::steady_timer timer_{context_};
  tcp::resolver resolver_{context_};
  tcp::socket socket_{context_};
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  beast::flat_buffer buffer_{head_bytes_max};
  std::optional<HttpTrouble> closed_;
  bool looking_up_ = false;
  bool connected_ = false;
  bool from_internet_ = false;
};

}  // namespace

std::string_view HttpHead::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (beast::iequals({key.data(), key.size()}, {name.data(), name.size()})) return value;
  }
  return {};
}

struct HttpClient::State {
  Url server;
  Options options;
  std::optional<asio::ssl::context> trust;
  std::mutex mutex;
  std::vector<std::unique_ptr<Connection>> idle;

  std::unique_ptr<Connection> claim_idle() {
    const std::lock_guard guard(mutex);
    while (!idle.empty()) {
      auto connection = std::move(idle.back());
      idle.pop_back();
      if (connection->is_quiet()) return connection;
    }
    return nullptr;
  }

  void keep(std::unique_ptr<Connection> connection) {
    const std::lock_guard guard(mutex);
    if (idle.size() < options.idle_connections_max) idle.push_back(std::move(connection));
  }

  void drop_idle() {
    decltype(idle) dropped;
    const std::lock_guard guard(mutex);
    dropped.swap(idle);
  }
};

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() = default;
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;

Result<HttpClient> HttpClient::to(Url server, Options options) {
  auto state = std::make_unique<State>();
  state->server = std::move(server);
  state->options = std::move(options);
  if (!state->server.tls) return HttpClient(std::move(state));

  auto& trust = state->trust.emplace(asio::ssl::context::tls_client);
  ErrorOf error;
  SSL_CTX_set_min_proto_version(trust.native_handle(), TLS1_2_VERSION);
  trust.set_verify_mode(asio::ssl::verify_peer, error);
  trust.set_default_verify_paths(error);  // without the system's there may be the file's
  if (const auto& file = state->options.ca_file; !file.empty()) {
    trust.load_verify_file(file.string(), error);
    if (error) {
      return Error{ErrorCode::invalid,
                   "no certificates can be read from " + file.string() + ": " + error.message(),
                   "ca_file"};
    }
  }
  return HttpClient(std::move(state));
}

Result<HttpHead, HttpFault> HttpClient::ask(const HttpRequest& request, const HttpSink& sink,
                                            const std::stop_token& stop) {
  if (stop.stop_requested()) return HttpFault{HttpTrouble::cancelled, "it was not asked"};
  for (bool again = false;; again = true) {
    auto connection = again ? nullptr : state_->claim_idle();
    const bool kept = connection != nullptr;
    if (!kept) {
      connection = std::make_unique<Connection>(
          state_->server, state_->trust ? &*state_->trust : nullptr, state_->options);
    }
    auto answer = connection->ask(request, sink, stop);
    if (answer.reusable) state_->keep(std::move(connection));
    // Its destructor waits for a look-up that may hang; a cancelled caller does not.
    if (connection && connection->abandoned()) {
      std::thread([left = std::move(connection)] {}).detach();
    }
    const bool stale = kept && answer.nothing_came && !answer.head.ok() &&
                       answer.head.error().trouble == HttpTrouble::lost;
    if (!stale) return std::move(answer.head);
    state_->drop_idle();  // they were closed at the same time, most probably
  }
}

}  // namespace watchdog
