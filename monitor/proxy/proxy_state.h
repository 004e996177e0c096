/// \file
/// What all connections of a proxy share; of its thread alone, but for the counts.
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

#include "proxy/link.h"
#include "proxy/prober.h"
#include "proxy/proxy.h"

namespace watchdog::monitor {

using ProxyClock = std::chrono::steady_clock;

/// One client's connection.
class Passage {
 public:
  Passage() = default;
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;
  virtual ~Passage() = default;

  virtual void begin() = 0;
  /// Called each second: closes what does not come, feeds who waits.
  virtual void tick(ProxyClock::time_point now) = 0;
  /// No further request: ends now, unless one is under way.
  virtual void stop() = 0;
  /// Ends at once.
  virtual void close() = 0;
  /// What the server does with the request under way.
  virtual void learn(const ServerFinding& finding) = 0;
};

struct ServerLink {
  Upstream upstream;
  std::optional<boost::asio::ssl::context> trust;  ///< Of TLS.
  std::unique_ptr<Prober> prober;                  ///< Null: it is not looked at.
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

  std::unordered_set<std::shared_ptr<Passage>> passages;
  std::unordered_map<RequestId, Passage*> exchanges;  ///< Whose each is.
  RequestId last_exchange = 0;
  std::size_t inspected_bytes = 0;  ///< Of all bodies under way.
  bool accept_paused = false;
  bool stopping = false;
  std::atomic<std::int64_t> connections_open{0}, exchanges_open{0};

  Result<void> open();
  void accept();
  void tick_later();
  /// Who gets a request for this model; empty: none was named.
  [[nodiscard]] ServerLink& server_for(std::string_view model);
  /// Tells the listener.
  void tell(RequestId exchange, decltype(Observation::what) what) const;
  void drop(const std::shared_ptr<Passage>& passage);
};

[[nodiscard]] std::shared_ptr<Passage> make_passage(std::shared_ptr<Proxy::State> proxy,
                                                    LinkSocket socket);

}  // namespace watchdog::monitor
