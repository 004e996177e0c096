// All runs on the thread of the io_context. A full server closes the connection that has been
// without a complete request for longest, never one that is being answered. Without free
// descriptors accepting pauses until the next sweep, because each try would fail at once. The sweep
// looks at all connections once a second, instead of a timer for each. A lack of memory costs one
// connection or one sweep, never the server.
#include "http/server.h"

#include <boost/asio/ip/address.hpp>
#include <new>
#include <utility>

#include "http/conversation.h"
#include "http/server_state.h"
#include "http/tls_files.h"

namespace watchdog::monitor {

void HttpServer::State::accept() {
  acceptor.async_accept(
      [self = shared_from_this()](boost::system::error_code error, web::Socket socket) {
        if (error == web::asio::error::operation_aborted) return;
        if (self->stopping) {
          // Accepted at the last moment: its request was not refused, so it is answered.
          if (!error && self->inherited) (void)self->admit(std::move(socket));
          return;
        }
        const bool admitted = !error && self->make_room() && self->admit(std::move(socket));
        if (!error && !admitted && self->metrics != nullptr)
          self->metrics->connections_refused.add();
        if (error == web::asio::error::no_descriptors) {
          self->accept_paused = true;  // nothing can be accepted before something is closed
          return;
        }
        self->accept();
      });
}

bool HttpServer::State::admit(web::Socket socket) try {
  boost::system::error_code error;
  socket.set_option(web::tcp::no_delay(true), error);
  const auto end = socket.remote_endpoint(error);
  if (error) return true;  // gone already
  const auto own = socket.local_endpoint(error);
  web::Peer peer{.address = end.address().to_string(), .port = end.port()};
  if (!error) peer.own_port = own.port();
  std::shared_ptr<web::Connection> connection;
  if (tls) {
    connection = std::make_shared<web::Conversation<web::TlsSocket>>(
        shared_from_this(), web::TlsSocket(std::move(socket), *tls), std::move(peer));
  } else {
    connection = std::make_shared<web::Conversation<web::Socket>>(
        shared_from_this(), std::move(socket), std::move(peer));
  }
  connections.insert(connection);
  if (metrics != nullptr) metrics->connections_opened.add();
  connection->begin();
  return true;
} catch (const std::bad_alloc&) {
  return false;  // running ones are closed
}

/// Returns true if one more connection is possible. When all are taken, the one without a complete
/// request for the longest time is closed: idle connections must not block new clients.
bool HttpServer::State::make_room() {
  if (connections.size() < limits.connections_max) return true;
  std::shared_ptr<web::Connection> longest;
  auto earliest = web::SteadyClock::time_point::max();
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

void HttpServer::State::sweep_all() try {
  const auto now = web::SteadyClock::now();
  const auto open = connections;  // closing one erases it
  for (const auto& connection : open) connection->sweep(now);
} catch (const std::bad_alloc&) {
  // The rest is looked at a second later.
}

void HttpServer::State::sweep_later() {
  sweep.expires_after(std::chrono::seconds(1));
  sweep.async_wait([self = this->shared_from_this()](boost::system::error_code) {
    if (self->stopping && self->connections.empty()) return;
    self->sweep_all();
    if (std::exchange(self->accept_paused, false) && !self->stopping) self->accept();
    self->sweep_later();
  });
}

namespace {

Result<void> open_at(web::Acceptor& acceptor, const web::tcp::endpoint& endpoint) {
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(web::asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(web::asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  return Error{ErrorCode::unavailable,
               "cannot listen on " + endpoint.address().to_string() + " port " +
                   std::to_string(endpoint.port()) + ": " + error.message(),
               "port"};
}

/// The access policy follows from the address of the settings, so the socket must have the same.
Result<void> adopt(web::Acceptor& acceptor, const web::tcp::endpoint& endpoint, int socket) {
  boost::system::error_code error;
  acceptor.assign(endpoint.protocol(), socket, error);
  const auto own = error ? web::tcp::endpoint() : acceptor.local_endpoint(error);
  if (!error && own.address() == endpoint.address()) return {};
  const auto found = error ? error.message() : own.address().to_string();
  return Error{ErrorCode::invalid,
               "the socket of the service manager listens on " + found + ", and monitor.bind is " +
                   endpoint.address().to_string() + ". Make both the same",
               "bind"};
}

}  // namespace

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() {
  stop();
}

Result<std::unique_ptr<HttpServer>> HttpServer::listen(
    web::asio::io_context& context, const std::string& address, std::uint16_t port,
    Admission admission, Handler handler, const std::optional<TlsFiles>& tls, ServerLimits limits,
    Metrics* metrics, std::optional<int> inherited) {
  boost::system::error_code error;
  const auto ip = web::asio::ip::make_address(address, error);
  if (error) {
    return Error{ErrorCode::invalid, address + " is no IP address", "bind"};
  }
  auto state =
      std::make_shared<State>(context, std::move(admission), std::move(handler), limits, metrics);
  if (tls) {
    state->tls.emplace(web::asio::ssl::context::tls_server);
    if (auto ready = use_files(*state->tls, *tls); !ready) return ready.error();
  }
  state->inherited = inherited.has_value();
  const web::tcp::endpoint endpoint(ip, port);
  if (auto ready = inherited ? adopt(state->acceptor, endpoint, *inherited)
                             : open_at(state->acceptor, endpoint);
      !ready)
    return ready.error();
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
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  state_->sweep.cancel();
  const auto open = state_->connections;
  for (const auto& connection : open) connection->stop();
}

Result<bool> is_loopback(const std::string& address) {
  boost::system::error_code error;
  const auto ip = web::asio::ip::make_address(address, error);
  if (error) return Error{ErrorCode::invalid, address + " is no IP address", "bind"};
  return ip.is_loopback();
}

}  // namespace watchdog::monitor
