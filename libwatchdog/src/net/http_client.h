/// \file
/// HTTP/1.1 to one server, without a deadline of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/url.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

struct HttpRequest {
  std::string_view method = "GET";
  std::string target{};
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string_view body{};
  std::optional<Millis> at_most{};  ///< For the whole request; empty: no limit.
};

/// The head of a response. A plain value.
struct HttpHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers{};
  bool from_internet = false;  ///< The peer's address is a public one.

  /// Empty if there is none. Names in any case.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// Receives the body piece by piece, on the calling thread. Returning false ends the request.
using HttpSink = std::function<bool(const HttpHead& head, std::string_view piece)>;

/// Why a response is missing or incomplete.
enum class HttpTrouble : std::uint8_t {
  cancelled,        ///< `stop` was requested
  late,             ///< `at_most` has passed
  host_not_found,   ///< the name has no address
  no_name_service,  ///< the name service does not answer
  refused,          ///< no process accepts connections there
  untrusted,        ///< TLS: no trust, not the name's, or no TLS at all
  lost,             ///< closed or reset before the answer's end
  malformed,        ///< the response is not HTTP
};

struct HttpFault {
  HttpTrouble trouble = HttpTrouble::lost;
  std::string message{};  ///< For a person; the cause, without the server's name.
};

/// Thread-safe: each running request has its own connection; idle ones are kept and reused.
class HttpClient {
 public:
  struct Options {
    std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
    std::size_t idle_connections_max = 4;
    /// Asked after each connect to this machine itself, before a byte is sent. The address is in
    /// text form. A text that is not empty says why nothing may be sent.
    std::function<std::string(const std::string& address, std::uint16_t port)> fault_of_local{};
  };

  /// Connects at the first request. Errors: `invalid` (the CA file).
  [[nodiscard]] static Result<HttpClient> to(Url server, Options options);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends the request once; twice only if a kept connection turns out to be closed before a byte
  /// of the response came. Only the sink bounds the body. Redirects are returned.
  ///
  /// `stop` ends it in every phase. A look-up of a name cannot be interrupted: it stays behind on
  /// its own thread until the system's resolver gives up.
  [[nodiscard]] Result<HttpHead, HttpFault> ask(const HttpRequest& request, const HttpSink& sink,
                                                const std::stop_token& stop = {});

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
