#include "proxy/connection/upstream_connection.h"

#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;

/// Probed after a minute without a word, given up after five more.
constexpr int silent_seconds = 60;
constexpr int probe_seconds = 30;
constexpr int probes_max = 10;

}  // namespace

void UpstreamConnection::connect(const std::vector<asio::ip::tcp::endpoint>& addresses, Done done) {
  asio::async_connect(
      socket_, addresses,
      [done = std::move(done)](const LinkError& error, const auto&) { done(error, 0); });
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
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, int value) {
    setsockopt(socket_.native_handle(), IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_KEEPIDLE, silent_seconds);
  set(TCP_KEEPINTVL, probe_seconds);
  set(TCP_KEEPCNT, probes_max);
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

void UpstreamConnection::write(const std::array<asio::const_buffer, 2>& pieces, Done done) {
  tls_ ? asio::async_write(*tls_, pieces, std::move(done))
       : asio::async_write(socket_, pieces, std::move(done));
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
