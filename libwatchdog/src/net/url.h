/// \file
/// The address of an HTTP server.
#pragma once

#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog {

/// A plain value.
struct Url {
  bool tls = false;
  std::string host{};  ///< A name or an address, IPv6 without brackets.
  std::string port{};
  std::string path{};  ///< Empty, or begins with a slash and does not end with one.

  /// Returns the form of a `Host` header: without the scheme's own port.
  [[nodiscard]] std::string authority() const;
  /// Returns the text for people and messages.
  [[nodiscard]] std::string text() const;
};

/// `http[s]://HOST[:PORT][/PATH]`. Errors: `invalid`; a URL that carries credentials is refused,
/// and not repeated in the message.
[[nodiscard]] Result<Url> url_from(std::string_view text);

}  // namespace watchdog
