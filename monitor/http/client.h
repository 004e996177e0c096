/// \file
/// Asks a running monitor.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "api/message.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// Keeps its connection between requests. Use from one thread at a time.
class HttpClient {
 public:
  /// `url` is `http://HOST[:PORT]`. Connects at the first request. Errors: `invalid`.
  [[nodiscard]] static Result<HttpClient> to(const std::string& url, std::string token = {});
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Waits for the response. Errors: `unavailable` (cannot be reached, or hung up).
  [[nodiscard]] Result<Response> ask(Method method, const std::string& target,
                                     const std::string& body = {});

  /// Gets a body that may never end, piece by piece as it comes, until `take` says false: then the
  /// response has no body. A response other than 200 is given whole and not taken. Errors:
  /// `unavailable` (likewise; also after 40 s without a byte, since servers that live say something
  /// in between), `cancelled` (`stop`).
  [[nodiscard]] Result<Response> listen(const std::string& target, const std::string& last_event_id,
                                        const std::function<bool(std::string_view)>& take,
                                        const std::stop_token& stop);

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// True if the URL's host is this machine, by a name or an address of loopback.
[[nodiscard]] bool is_loopback_url(const std::string& url);

}  // namespace watchdog::monitor
