/// \file
/// Heads of requests and answers on their way through, without any socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watchdog/url.h"

namespace watchdog::monitor {

/// As they came, in order; names in any case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first of that name; empty: none.
[[nodiscard]] std::string_view header_in(const Headers& headers, std::string_view name) noexcept;

/// What may stand in front of a path: `/s/SESSION` says whose request it is, `/t/TOKEN` that the
/// client may come here. In any order, each once.
struct PathPrefix {
  std::string session;  ///< Percent-decoded; empty: none.
  std::string token;
  std::string target;  ///< What is left: the server's own, beginning with a slash.
};
[[nodiscard]] PathPrefix prefix_in(std::string_view target);

/// How the end of a body is told.
struct Framing {
  enum class Kind : std::uint8_t { none, length, chunks, close };
  Kind kind = Kind::none;
  std::uint64_t length = 0;  ///< Of `length`.
};

/// The request's head as the server gets it: all of it but what is between two neighbours only
/// (RFC 9110 7.6.1), and what is meant for us (`X-Watchdog-…`). `plain`: no compression is asked
/// for, so that the answer can be read.
[[nodiscard]] std::string request_head(std::string_view method, std::string_view target,
                                       const Headers& headers, const Url& server, Framing framing,
                                       bool plain);

/// The answer's head as the client gets it, likewise.
[[nodiscard]] std::string answer_head(int status, std::string_view reason, const Headers& headers,
                                      Framing framing, bool last);

/// What may be looked at later: without credentials and cookies.
[[nodiscard]] Headers without_secrets(const Headers& headers);
/// Tells apart who has other credentials; 0: there are none. Not to be stored.
[[nodiscard]] std::uint64_t key_digest(const Headers& headers) noexcept;

/// True if `name` is what the pattern says, in which a `*` stands for anything.
[[nodiscard]] bool matches_model(std::string_view pattern, std::string_view name) noexcept;

}  // namespace watchdog::monitor
