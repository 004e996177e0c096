// connect and write try the system call first, and wait through the context only if it would block.
// They report success at once, and an error always later, so the caller can finish its own step
// first. A connection within this machine is established when connect(2) returns EINPROGRESS.
#include "proxy/connection/upstream_connection.h"

#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;

/// Probed after a minute without a word, given up after five more.
constexpr int silent_seconds = 60;
constexpr int probe_seconds = 30;
constexpr int probes_max = 10;

}  // namespace

UpstreamConnection::UpstreamConnection(LinkSocket socket) : socket_(std::move(socket)) {
  LinkError ignored;
  if (socket_.is_open()) socket_.non_blocking(true, ignored);
}

void UpstreamConnection::connect(std::vector<asio::ip::tcp::endpoint> addresses, Done done) {
  addresses_ = std::move(addresses);
  connect_next(asio::error::host_not_found, std::move(done));
}

void UpstreamConnection::connect_next(LinkError error, Done done) {
  while (!addresses_.empty()) {
    const auto address = addresses_.front();
    addresses_.erase(addresses_.begin());
    LinkError ignored;
    socket_.close(ignored);
    socket_.open(address.protocol(), error);
    if (!error) socket_.non_blocking(true, error);
    if (error) continue;
    const bool is_under_way = ::connect(socket_.native_handle(), address.data(),
                                        static_cast<socklen_t>(address.size())) == 0 ||
                              errno == EINPROGRESS;
    if (!is_under_way) {
      error.assign(errno, asio::error::get_system_category());
      continue;
    }
    // Within this machine the connection is established already.
    if (peer_port() != 0) return done({}, 0);
    return socket_.async_wait(LinkSocket::wait_write,
                              [this, done = std::move(done)](LinkError failed) mutable {
                                if (!failed) failed = pending_error();
                                if (!failed || failed == asio::error::operation_aborted)
                                  return done(failed, 0);
                                connect_next(failed, std::move(done));
                              });
  }
  asio::post(socket_.get_executor(), [done = std::move(done), error] { done(error, 0); });
}

LinkError UpstreamConnection::pending_error() {
  int number = 0;
  socklen_t size = sizeof number;
  if (getsockopt(socket_.native_handle(), SOL_SOCKET, SO_ERROR, &number, &size) != 0)
    number = errno;
  return {number, asio::error::get_system_category()};
}

void UpstreamConnection::begin_tls_as_server(asio::ssl::context& context, Done done) {
  tls_.emplace(socket_, context);
  tls_->async_handshake(asio::ssl::stream_base::server,
                        [done = std::move(done)](const LinkError& error) { done(error, 0); });
}

void UpstreamConnection::begin_tls_as_client(asio::ssl::context& context, const std::string& host,
                                             Done done) {
  tls_.emplace(socket_, context);
  SSL* const ssl = tls_->native_handle();
  LinkError no_address;
  asio::ip::make_address(host, no_address);
  if (no_address) {
    SSL_set_tlsext_host_name(ssl, host.c_str());
    SSL_set1_host(ssl, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str());
  }
  tls_->async_handshake(asio::ssl::stream_base::client,
                        [done = std::move(done)](const LinkError& error) { done(error, 0); });
}

std::string UpstreamConnection::distrust() {
  if (!tls_) return {};
  const long verdict = SSL_get_verify_result(tls_->native_handle());
  return verdict == X509_V_OK ? "" : X509_verify_cert_error_string(verdict);
}

void UpstreamConnection::tune() {
  LinkError ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

void UpstreamConnection::watch_peer() {
  if (std::exchange(is_watched_, true)) return;
  LinkError ignored;
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, silent_seconds);
  set(TCP_KEEPINTVL, probe_seconds);
  set(TCP_KEEPCNT, probes_max);
}

bool UpstreamConnection::is_quiet() {
  char byte = 0;
  if (tls_) {
    // Bytes on the wire may be a session ticket, which this read takes. Whatever else comes ends
    // the use of the connection, so the byte is not missed.
    LinkError error;
    const auto count = tls_->read_some(asio::buffer(&byte, sizeof byte), error);
    return count == 0 && error == asio::error::would_block;
  }
  const auto count = recv(socket_.native_handle(), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

std::string UpstreamConnection::peer() const {
  LinkError error;
  const auto end = socket_.remote_endpoint(error);
  return error ? std::string() : end.address().to_string();
}

std::uint16_t UpstreamConnection::peer_port() const {
  LinkError error;
  const auto end = socket_.remote_endpoint(error);
  return error ? std::uint16_t{0} : end.port();
}

std::uint16_t UpstreamConnection::own_port() const {
  LinkError error;
  const auto end = socket_.local_endpoint(error);
  return error ? std::uint16_t{0} : end.port();
}

void UpstreamConnection::read(asio::mutable_buffer into, Done done) {
  tls_ ? tls_->async_read_some(into, std::move(done))
       : socket_.async_read_some(into, std::move(done));
}

void UpstreamConnection::write(std::array<asio::const_buffer, 2> pieces, Done done) {
  if (tls_) return asio::async_write(*tls_, pieces, std::move(done));
  LinkError error;
  auto sent = socket_.write_some(pieces, error);
  const auto bytes = asio::buffer_size(pieces);
  if (!error && sent == bytes) return done({}, bytes);
  if (error) sent = 0;  // async_write meets a lasting error again, and reports it
  for (auto& piece : pieces) {
    const auto part = std::min(sent, piece.size());
    piece += part;
    sent -= part;
  }
  asio::async_write(socket_, pieces, std::move(done));
}

void UpstreamConnection::end_writing() {
  LinkError ignored;
  if (tls_) return close();
  socket_.shutdown(LinkSocket::shutdown_send, ignored);
}

void UpstreamConnection::close() {
  LinkError ignored;
  socket_.close(ignored);
}

void UpstreamConnection::reset() {
  LinkError ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
}

}  // namespace watchdog::monitor
