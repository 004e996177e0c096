/// \file
/// One e-mail by SMTP, bounded in time.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

#include "alerts/send_result.h"

namespace watchdog::monitor {

/// An e-mail and its way. A plain value.
struct Mail {
  std::string url{};              ///< `smtps://HOST[:PORT]`, or `smtp://HOST[:PORT]` with STARTTLS.
  std::string login{};            ///< `USER:PASSWORD`; empty: none.
  std::string from{};             ///< Address.
  std::vector<std::string> to{};  ///< Addresses.
  std::string subject{};
  std::string text{};
  std::string key{};                ///< Names the message: the same at each attempt.
  Millis at_most{10'000};           ///< For all of it.
  std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
};

/// The message as the server gets it. Subject and text are encoded as a whole, so none of their
/// bytes can end a header or the message. REQUIRES: the addresses are plain. Thread-safe.
[[nodiscard]] std::string mail_text(const Mail& mail, WallTime now);

/// Tries once. Without TLS nothing is sent, except to this machine itself without a login.
/// Thread-safe.
[[nodiscard]] SendResult send_mail(const Mail& mail, const std::stop_token& stop);

}  // namespace watchdog::monitor
