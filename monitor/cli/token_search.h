/// \file
/// Which token to show to a monitor of this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/message.h"

namespace watchdog::monitor {

/// Returns the user whose process listens on a TCP port, from the text of /proc/net/tcp or tcp6.
/// Nothing if none does, or processes of several users do. Pure.
[[nodiscard]] std::optional<uid_t> listener_in(std::string_view table, std::uint16_t port);

/// Returns a secret for a monitor that answered 401: from the file that the answer names, or else
/// from that of the settings. Empty: this user may read no such file. The file that the
/// answer names is read only if its owner is the user who listens at the URL. Otherwise another
/// user who listens there could get a secret by naming a file. REQUIRES: the URL is of loopback.
/// Reads files. Thread-safe.
[[nodiscard]] std::string secret_after(const Response& refusal, const std::string& url);

/// The file of tokens that a refusal names; empty: none. Thread-safe.
[[nodiscard]] std::string token_file_in(const Response& refusal);

}  // namespace watchdog::monitor
