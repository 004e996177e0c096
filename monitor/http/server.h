/// \file
/// The API on a socket.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/message.h"
#include "core/metrics.h"
#include "watchdog/result.h"

namespace boost::asio {
class io_context;
}

namespace watchdog::monitor {

/// Bounds of what a client may ask for. A plain value.
struct ServerLimits {
  std::size_t header_bytes_max = 16 * 1024;          ///< Beyond: 431.
  std::size_t body_bytes_max = 16 * 1024 * 1024;     ///< Beyond: 413.
  std::size_t bodies_bytes_max = 256 * 1024 * 1024;  ///< Of all requests under way. Beyond: 503.
  std::size_t connections_max = 1'024;               ///< Beyond: the one that idles longest goes.
  int idle_seconds_max = 75;                         ///< Without a request.
  int request_seconds_max = 60;  ///< From a request's first byte to its last; for each write.
  int handshake_seconds_max = 10;
};

/// The server's certificate and key, both PEM. A plain value.
struct TlsFiles {
  std::filesystem::path certificate;  ///< With the chain that leads to it.
  std::filesystem::path key;
};

/// Answers HTTP/1.1 on one address, on the thread that runs the io_context.
class HttpServer {
 public:
  /// Looks at a request before its body is read: the refusal, or nothing if it may go on.
  using Admission = std::function<std::optional<Response>(const Request&)>;
  using Handler = std::function<void(Request, Reply)>;

  /// Begins to listen, with TLS if it has files for that. `handler`'s reply may come from any
  /// thread; `metrics`, which must outlive the server, gets its connections. `inherited`: a
  /// listening socket of the address, which this takes over instead of `port`. Errors: `invalid`
  /// (no address, files that cannot be used, a socket of another address), `unavailable` (in use,
  /// not allowed).
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> listen(
      boost::asio::io_context& context, const std::string& address, std::uint16_t port,
      Admission admission, Handler handler, const std::optional<TlsFiles>& tls = {},
      ServerLimits limits = {}, Metrics* metrics = nullptr, std::optional<int> inherited = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// `http://ADDRESS:PORT`, or https.
  [[nodiscard]] std::string url() const;
  /// Accepts no more; answers what is under way and closes.
  void stop();

  struct State;

 private:
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// True if only this machine can reach the address. Errors: `invalid` (no IP address).
[[nodiscard]] Result<bool> is_loopback(const std::string& address);

}  // namespace watchdog::monitor
