/// \file
/// One request to a web server, bounded in time.
#pragma once

#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// A request. A plain value.
struct WebRequest {
  std::string_view method = "POST";
  std::string url{};  ///< `http[s]://HOST[:PORT][/PATH][?QUERY]`; path and query may be a secret.
  std::vector<std::pair<std::string, std::string>> headers{};  ///< Besides JSON's Content-Type.
  std::string body{};                                          ///< Empty without a body.
  Millis at_most{10'000};           ///< For the whole request, the look-up of the name included.
  std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
};

/// A plain value.
struct WebAnswer {
  int status = 0;
  std::string body{};                   ///< Its first 1,024 bytes.
  std::optional<Millis> retry_after{};  ///< The pause that the server asks for.
};

/// Sends one request over its own connection. A redirect is returned. Errors: `invalid` (the URL,
/// the CA file), `cancelled` (`stop`), `unavailable` (no response, with the cause); messages name
/// only the server of the URL. Thread-safe.
[[nodiscard]] Result<WebAnswer> ask_once(const WebRequest& spec, const std::stop_token& stop = {});

/// Returns an error if the text is not a URL to request. Thread-safe.
[[nodiscard]] Result<void> check_web_url(std::string_view url);

/// HMAC-SHA256 (RFC 2104) as 64 hexadecimal digits. Thread-safe.
[[nodiscard]] std::string hmac_sha256(std::string_view key, std::string_view text);

}  // namespace watchdog
