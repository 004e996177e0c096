/// \file
/// Asks a running monitor.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "api/message.h"
#include "net/http_client.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// Keeps its connection between requests. Use from one thread at a time.
class MonitorClient {
 public:
  struct Options {
    std::string token{};              ///< The token to send; empty: none.
    std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
    /// HttpClient::Options::fault_of_local, without TLS. A certificate proves the server's name.
    std::function<std::string(const std::string& address, std::uint16_t port)> fault_of_local{};
  };
  /// `url` is `http[s]://HOST[:PORT]`. Connects at the first request. Errors: `invalid`.
  [[nodiscard]] static Result<MonitorClient> to(const std::string& url, Options options);

  /// Waits for the response; what does not change anything is got. Errors: `unavailable` (cannot be
  /// reached, not trusted, or hung up).
  [[nodiscard]] Result<Response> ask(Method method, const std::string& target,
                                     const std::string& body = {});

  /// Gets a body that may never end, piece by piece as it comes, until `receive` says false: then
  /// the response has no body. A response other than 200 is given whole and not taken. Errors:
  /// `unavailable` (likewise; also when the body ended), `cancelled` (`stop`).
  [[nodiscard]] Result<Response> listen(const std::string& target, const std::string& last_event_id,
                                        const std::function<bool(std::string_view)>& receive,
                                        const std::stop_token& stop);

 private:
  [[nodiscard]] HttpRequest request(Method method, const std::string& target) const;
  MonitorClient(std::string url, std::string token, HttpClient http)
      : url_(std::move(url)), token_(std::move(token)), http_(std::move(http)) {}

  std::string url_;
  std::string token_;
  HttpClient http_;
};

/// True if the URL's host is this machine, by a name or an address of loopback.
[[nodiscard]] bool is_loopback_url(const std::string& url);

}  // namespace watchdog::monitor
