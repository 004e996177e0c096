/// \file
/// Stands between agents and their model's server, and passes on what they say to each other.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/message.h"
#include "http/server.h"
#include "process/process_sample.h"
#include "proxy/server/prober.h"
#include "proxy/sessions/observation.h"
#include "proxy/sessions/spending.h"
#include "watchdog/result.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Bounds of what clients may ask for. A plain value.
struct ProxyLimits {
  std::size_t header_bytes_max = 64 * 1024;  ///< Of a request: 431; of an answer: 502.
  /// A request's body up to here is looked into; of a larger one only the beginning.
  std::size_t inspected_bytes_max = 16 * 1024 * 1024;
  /// Up to here a body is held until it names the model that chooses its server.
  std::size_t routed_bytes_max = 64 * 1024 * 1024;
  std::size_t inspected_in_all_max = 256 * 1024 * 1024;  ///< Likewise, of all under way.
  std::size_t connections_max = 4'096;                   ///< Beyond: not accepted.
  int idle_seconds_max = 300;                            ///< Without a request.
  int upload_seconds_max = 60;  ///< Without a byte of a request that began.
};

/// A model server. A plain value.
struct Upstream {
  std::string name;                   ///< For people.
  Url url;                            ///< Without `/v1`.
  std::vector<std::string> models{};  ///< `*` matches any text; empty: all.
  std::filesystem::path ca_file{};
  std::string api_key{};  ///< For looking at it.
};

/// The open requests and connections. A plain value.
struct ProxyLoad {
  std::int64_t connections = 0;
  std::int64_t exchanges = 0;  ///< Requests whose answers are not over.
};

/// Has its own thread. Bodies, status and headers pass unchanged, except headers between two
/// neighbours (RFC 9110 7.6.1), keep-alives (see `keep_alive`), and progress that the proxy
/// requested itself. Nothing is sent twice. No time limit ends an exchange. Thread-safe.
class Proxy {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;
    std::optional<TlsFiles> tls{};
    ProxySettings settings{};
    std::vector<Upstream> upstreams;  ///< The last one that takes all models gets what is left.
    ProxyLimits limits{};
    /// Looks at a request before its body is read: the refusal, or nothing. The token of its path
    /// or of `X-Watchdog-Token` is in `authorization`. From the proxy's thread; null: all may come.
    std::function<std::optional<Response>(const Request&)> admission{};
    /// Called before a model request is sent to its server: returns the cancel of its session, or
    /// nothing. From the proxy's thread; null: no session is cancelled.
    std::function<std::optional<CancelRequest>(const ExchangeBegan&)> cancelled{};
    /// Called likewise: returns why its session gets no further answer; null: no budget is set.
    std::function<std::optional<SpendingRefusal>(const ExchangeBegan&)> over_budget{};
    /// Returns the process of a client that begins a model request; nothing: unknown. From the
    /// proxy's thread, and may take it some milliseconds; null: nobody looks.
    std::function<std::optional<ProcessFacts>(const ClientConnection&)> client_of{};
    /// Returns the session that a process was started for; empty: none. As `client_of`.
    std::function<std::string(const ProcessFacts&)> session_of_process{};
    /// Gets what a server does with a request, also after the request's end. From the threads of
    /// the probers. Must not wait; null: nobody asks.
    std::function<void(const Url& server, const ServerFinding&)> finding{};
    /// Gets what is seen, in order, from the proxy's thread. Must not wait.
    std::function<void(Observation)> listener;
    std::function<void(const std::string&)> log{};
  };

  /// Errors: `invalid` (address, files), `unavailable` (the port is taken).
  [[nodiscard]] static Result<std::unique_ptr<Proxy>> start(Options options);
  /// Breaks off what is open.
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  /// `http://ADDRESS:PORT`, or https.
  [[nodiscard]] std::string url() const;
  [[nodiscard]] ProxyLoad load() const;
  /// Accepts no more; what is open goes on to its end.
  void stop();
  /// Returns when nothing is open any more, after stop().
  void wait_until_done();

  struct State;

 private:
  explicit Proxy(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace watchdog::monitor
