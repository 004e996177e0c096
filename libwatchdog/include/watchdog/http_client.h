/// \file
/// HTTP/1.1 to one server, without a deadline of its own.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watchdog/url.h"
#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

struct HttpRequest {
  std::string_view method = "GET";
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string_view body{};
  std::optional<Millis> at_most{};  ///< For all of it; nothing: as long as it takes.
};

/// What an answer begins with.
struct HttpHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  bool from_internet = false;  ///< The peer's address is a public one.

  /// Empty if there is none. Names in any case.
  [[nodiscard]] std::string_view header(std::string_view name) const;
};

/// Gets the body piece by piece as it arrives, on the thread that asks. False: what still comes is
/// of no interest.
using HttpSink = std::function<bool(const HttpHead& head, std::string_view piece)>;

/// Why there was no answer, or not all of it.
enum class HttpTrouble : std::uint8_t {
  cancelled,        ///< `stop` was asked for
  late,             ///< `at_most` is over
  host_not_found,   ///< the name has no address
  no_name_service,  ///< whether it has one cannot be found out now
  refused,          ///< nobody accepts connections there
  untrusted,        ///< TLS: no trust, not the name's, or no TLS at all
  lost,             ///< closed or reset before the answer's end
  malformed,        ///< what came is no HTTP
};

struct HttpFault {
  HttpTrouble trouble = HttpTrouble::lost;
  std::string message;  ///< For a person; what it was that failed, without the server's name.
};

/// Thread-safe: each request that is under way has a connection of its own; idle ones are kept and
/// used again.
class HttpClient {
 public:
  struct Options {
    std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
    std::size_t idle_connections_max = 4;
  };

  /// Connects at the first request. Errors: `invalid` (the CA file).
  [[nodiscard]] static Result<HttpClient> to(Url server, Options options);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// Sends the request once; twice only if a kept connection turns out to be closed before a byte
  /// of the answer came. Bodies have no bound but the sink's. Redirects are answers.
  ///
  /// `stop` ends it in every phase. A look-up of the name cannot be broken off: it is left behind
  /// on a thread of its own, which ends when the system's resolver gives up.
  [[nodiscard]] Result<HttpHead, HttpFault> ask(const HttpRequest& request, const HttpSink& sink,
                                                const std::stop_token& stop = {});

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
