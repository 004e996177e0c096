/// \file
/// The state that all connections of a proxy share; of its thread alone, except the counts.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "proxy/connection/proxy.h"
#include "proxy/connection/upstream_connection.h"
#include "proxy/server/prober.h"

namespace watchdog::monitor {

using ProxyClock = std::chrono::steady_clock;

/// One client's connection.
class OpenConnection {
 public:
  OpenConnection() = default;
  OpenConnection(const OpenConnection&) = delete;
  OpenConnection& operator=(const OpenConnection&) = delete;
  virtual ~OpenConnection() = default;

  virtual void begin() = 0;
  /// Called each second: closes late connections, sends keep-alives.
  virtual void tick(ProxyClock::time_point now) = 0;
  /// No further request: ends now, unless one is under way.
  virtual void stop() = 0;
  /// Ends at once.
  virtual void close() = 0;
  /// Ends at once, though no memory is left.
  virtual void give_up() noexcept = 0;
  /// Receives what the server does with the request.
  virtual void learn(const ServerFinding& finding) = 0;
};

struct ServerLink {
  /// Some servers use a thread for each open connection. These limits leave them enough threads.
  static constexpr std::chrono::seconds kept_time{2};
  static constexpr std::size_t kept_max = 32;

  /// A connection that no request uses.
  struct Kept {
    std::shared_ptr<UpstreamConnection> connection;
    ProxyClock::time_point since;
  };

  Upstream upstream;
  std::optional<boost::asio::ssl::context> trust;  ///< Of TLS.
  std::unique_ptr<Prober> prober;                  ///< Null: it is not looked at.
  std::vector<Kept> kept{};                        ///< The newest last.

  /// Returns a kept connection that the server has not closed, or null.
  std::shared_ptr<UpstreamConnection> claim_kept();
  void keep(std::shared_ptr<UpstreamConnection> connection);
  /// Closes those that were kept before.
  void close_kept(ProxyClock::time_point before);
};

struct Proxy::State : std::enable_shared_from_this<Proxy::State> {
  explicit State(Options given) : options(std::move(given)) {}

  Options options;
  boost::asio::io_context context{1};
  boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, boost::asio::io_context::executor_type>
      acceptor{context};
  boost::asio::basic_waitable_timer<ProxyClock, boost::asio::wait_traits<ProxyClock>,
                                    boost::asio::io_context::executor_type>
      clockwork{context};
  std::optional<boost::asio::ssl::context> tls;
  std::vector<ServerLink> servers;
  std::string url;
  std::thread thread;

  std::unordered_set<std::shared_ptr<OpenConnection>> connections;
  std::unordered_map<RequestId, OpenConnection*> exchanges;  ///< The connection of each.
  RequestId last_exchange = 0;
  std::uint64_t last_connection = 0;
  std::size_t inspected_bytes = 0;  ///< Of all bodies under way.
  bool accept_paused = false;
  bool stopping = false;
  std::atomic<std::int64_t> connections_open{0}, exchanges_open{0};

  Result<void> open();
  void accept();
  void admit(LinkSocket socket);
  void tick_all();
  void tick_later();
  void learn(const ServerFinding& finding);
  /// Returns the server for this model; empty: none was named.
  [[nodiscard]] ServerLink& server_for(std::string_view model);
  /// True if not all models have the same server.
  [[nodiscard]] bool routes_by_model() const noexcept { return servers.size() > 1; }
  /// Notifies the listener.
  void observe(RequestId exchange, decltype(Observation::what) what) const;
  void drop(const std::shared_ptr<OpenConnection>& connection);
};

[[nodiscard]] std::shared_ptr<OpenConnection> make_connection(std::shared_ptr<Proxy::State> proxy,
                                                              LinkSocket socket);

}  // namespace watchdog::monitor
