/// \file
/// Heads of requests and answers on their way through, without any socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/url.h"

namespace watchdog::monitor {

/// As they came, in order; names in any case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first of that name; empty: none.
[[nodiscard]] std::string_view header_in(const Headers& headers, std::string_view name) noexcept;

/// Prefixes of a path: `/s/SESSION` names the session of a request, `/t/TOKEN` shows the client's
/// token. In any order, each once.
struct PathPrefix {
  std::string session;  ///< Percent-decoded; empty: none.
  std::string token;
  std::string target;  ///< The rest: the server's own path, beginning with a slash.
  std::string text;    ///< The prefixes as they came, in front of that.
};
[[nodiscard]] PathPrefix prefix_in(std::string_view target);

/// How the end of a body is marked.
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

/// Compares names of headers and their words, in any case.
[[nodiscard]] bool is_header(std::string_view name, std::string_view wanted) noexcept;
/// Removes all headers of that name.
void drop_header(Headers& headers, std::string_view name);

/// Removes the headers by which a server lets pages of other sites read its answer.
void drop_page_permissions(Headers& headers);

/// Returns the `Location` of an answer as the client needs it: an address of the server itself
/// becomes one of the proxy, below the prefix that the client used. Other addresses stay.
[[nodiscard]] std::string location_here(std::string_view location, const Url& server,
                                        std::string_view prefix);

/// The answer's head as the client gets it, likewise.
[[nodiscard]] std::string answer_head(int status, std::string_view reason, const Headers& headers,
                                      Framing framing, bool last);

/// Returns the headers without credentials and cookies, to be stored.
[[nodiscard]] Headers without_secrets(const Headers& headers);
/// Returns a digest that differs for other credentials; 0: there are none. Not to be stored.
[[nodiscard]] std::uint64_t key_digest(const Headers& headers) noexcept;

}  // namespace watchdog::monitor
