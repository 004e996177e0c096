/// \file
/// The state that all connections of a server share; of its thread alone.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "http/server.h"

namespace watchdog::monitor {

/// The server's own words for what it is made of.
namespace web {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
// The concrete executor and a plain socket: the general ones cost twice the instructions a request.
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;
using TlsSocket = asio::ssl::stream<Socket>;
using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;
using SteadyClock = std::chrono::steady_clock;

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

}  // namespace web

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  State(web::asio::io_context& io, Admission admit, Handler answer, ServerLimits bounds,
        Metrics* counted)
      : context(io),
        acceptor(io),
        sweep(io),
        admission(std::move(admit)),
        handler(std::move(answer)),
        limits(bounds),
        metrics(counted) {}

  web::asio::io_context& context;
  web::Acceptor acceptor;
  web::asio::steady_timer sweep;
  Admission admission;
  Handler handler;
  ServerLimits limits;
  Metrics* metrics;
  std::unordered_set<std::shared_ptr<web::Connection>> connections;
  std::size_t bodies_bytes = 0;  ///< Of all requests under way.
  std::optional<web::asio::ssl::context> tls;
  bool accept_paused = false;
  bool stopping = false;
  bool inherited = false;  ///< Others keep the port open, so no client is refused at a stop.

  void accept();
  /// False: there is no memory for one more.
  [[nodiscard]] bool admit(web::Socket socket);
  [[nodiscard]] bool make_room();
  void sweep_all();
  void sweep_later();
};

}  // namespace watchdog::monitor
