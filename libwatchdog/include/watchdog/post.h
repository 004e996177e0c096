/// \file
/// One message to somebody's web server, bounded in time.
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

/// What is posted where. A plain value.
struct PostSpec {
  std::string url;  ///< `http[s]://HOST[:PORT][/PATH][?QUERY]`; path and query may be a secret.
  std::vector<std::pair<std::string, std::string>> headers{};  ///< Besides JSON's Content-Type.
  std::string body{};
  Millis at_most{10'000};           ///< For all of it, the look-up of the name included.
  std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
};

/// A plain value.
struct PostAnswer {
  int status = 0;
  std::string body;                   ///< Its first 1,024 bytes.
  std::optional<Millis> retry_after;  ///< How long the server asks to be left alone.
};

/// Posts once, over a connection of its own. A redirect is an answer. Errors: `invalid` (the URL,
/// the CA file), `cancelled` (`stop`), `unavailable` (no answer, with the reason); messages name
/// the server and no more of the URL. Thread-safe.
[[nodiscard]] Result<PostAnswer> post(const PostSpec& spec, const std::stop_token& stop = {});

/// Nothing, or why the text is no URL to post to. Thread-safe.
[[nodiscard]] Result<void> check_post_url(std::string_view url);

/// HMAC-SHA256 (RFC 2104) as 64 hexadecimal digits. Thread-safe.
[[nodiscard]] std::string hmac_sha256(std::string_view key, std::string_view text);

}  // namespace watchdog
