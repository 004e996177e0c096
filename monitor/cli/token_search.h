/// \file
/// Which token to show to a monitor of this machine, and to whom.
#pragma once

#include <sys/types.h>

#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/message.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Returns the users whose processes listen at an address and port, from the text of /proc/net/tcp
/// and tcp6. A process that listens at all addresses listens at this
/// one, too. Pure.
[[nodiscard]] std::vector<uid_t> listeners_in(std::string_view table,
                                              const boost::asio::ip::address& address,
                                              std::uint16_t port);

/// Returns why no token may be sent to a peer on this machine. The process that listens there must
/// belong to this user, to root, or to `owner`, who owns the token's file. Thus a stranger who took
/// the monitor's port gets no token. Empty: it may be sent. Reads /proc; where
/// that cannot be read nothing is known, and the token may be sent. Thread-safe.
[[nodiscard]] std::string listener_fault(const std::string& address, std::uint16_t port,
                                         std::optional<uid_t> owner);

/// A token, and the owner of the file that it came from. A plain value.
struct FoundToken {
  std::string secret{};  ///< Empty: none was found.
  std::optional<uid_t> owner{};
};

/// Returns the acting token in a file, if this user may read it.
[[nodiscard]] FoundToken token_in(const std::filesystem::path& file);

/// Returns a token for a monitor that answered 401: from the file that the answer names, or else
/// from that of the settings. Show it only to a listener that listener_fault() allows, because
/// anybody may answer. Reads files. Thread-safe.
[[nodiscard]] FoundToken token_after(const Response& refusal, const Sources& sources);

/// The file of tokens that a refusal names; empty: none. Thread-safe.
[[nodiscard]] std::string token_file_in(const Response& refusal);

}  // namespace watchdog::monitor
