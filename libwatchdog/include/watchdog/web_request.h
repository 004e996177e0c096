/// \file
/// One request to somebody's web server, bounded in time.
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

/// What is asked of whom. A plain value.
struct WebRequest {
  std::string_view method = "POST";
  std::string url;  ///< `http[s]://HOST[:PORT][/PATH][?QUERY]`; path and query may be a secret.
  std::vector<std::pair<std::string, std::string>> headers{};  ///< Besides JSON's Content-Type.
  std::string body{};                                          ///< None unless something is posted.
  Millis at_most{10'000};           ///< For all of it, the look-up of the name included.
  std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
};

/// A plain value.
struct WebAnswer {
  int status = 0;
  std::string body;                   ///< Its first 1,024 bytes.
  std::optional<Millis> retry_after;  ///< How long the server asks to be left alone.
};

/// Asks once, over a connection of its own. A redirect is an answer. Errors: `invalid` (the URL,
/// the CA file), `cancelled` (`stop`), `unavailable` (no answer, with the reason); messages name
/// the server and no more of the URL. Thread-safe.
[[nodiscard]] Result<WebAnswer> ask_once(const WebRequest& spec, const std::stop_token& stop = {});

/// Nothing, or why the text is no URL to ask. Thread-safe.
[[nodiscard]] Result<void> check_web_url(std::string_view url);

/// HMAC-SHA256 (RFC 2104) as 64 hexadecimal digits. Thread-safe.
[[nodiscard]] std::string hmac_sha256(std::string_view key, std::string_view text);

}  // namespace watchdog
