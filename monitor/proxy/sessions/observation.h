/// \file
/// What the proxy observes of the requests that pass through it, for the thread that makes reports
/// of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/server_evidence.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// A request came whole and goes to its server.
struct ExchangeBegan {
  std::string method;
  std::string target;   ///< As it goes to the server: without the prefix that names a session.
  std::string session;  ///< The path's `/s/SESSION`; empty: none.
  std::string peer;     ///< The client's address.
  std::uint16_t peer_port = 0;   ///< 0: unknown.
  std::uint16_t own_port = 0;    ///< Where the client's connection came in.
  std::uint64_t connection = 0;  ///< Rises with each connection; never used again.
  std::string server;            ///< The URL of the model server that gets it.
  /// All but those that carry credentials or cookies.
  std::vector<std::pair<std::string, std::string>> headers;
  std::uint64_t key_digest =
      0;  ///< Of the credentials, to distinguish clients; 0: there were none.
  /// Unpacked, if it came packed; null: it is not read.
  std::shared_ptr<const std::string> body;
  bool body_is_cut = false;  ///< `body` is its beginning: it is too large.
  std::string unread{};      ///< Why the body, or the rest of it, is not read; empty: it is.
  bool is_tunnel = false;    ///< A WebSocket: only the size of its data is known.
  /// The client's process; empty: on another machine, in a container, or not found.
  std::optional<ProcessFacts> process{};
  /// The session that the client's process was started for, by its environment; empty: none.
  std::string process_session{};
};
/// The server accepted the connection, and gets the request.
struct ExchangeReached {};
/// The server's answer begins.
struct AnswerBegan {
  int status = 0;
  std::string content_type;
  std::string content_encoding;         ///< Empty: none.
  std::optional<Millis> retry_after{};  ///< The pause that the server asks for.
  std::optional<WallTime> limit_end{};  ///< When the limit that refused the request ends.
};
/// A piece of the answer as the server sent it, with the prompt's progress that was asked for on
/// its behalf.
struct AnswerPiece {
  std::string bytes;
};
/// Dropped or unread pieces: the answer is incomplete from here on.
struct AnswerSkipped {
  std::int64_t bytes = 0;
};
/// The evidence of the server's work on the request.
struct ExchangeEvidence {
  Evidence evidence;
  std::string why;
};
/// How an exchange ended.
struct ExchangeEnded {
  enum class How : std::uint8_t {
    answered,     ///< the answer went through whole
    client_gone,  ///< the client closed or broke the connection before that
    refused,      ///< the server accepts no connections
    lost,         ///< the server broke off, before or within its answer
    malformed,    ///< the server's answer is not HTTP
    failed,       ///< we gave it up on the server's evidence, where the owner wants that
    stopped,      ///< the proxy stops
    denied,       ///< the session is cancelled; the server did not get the request
    over_budget   ///< likewise, because a budget is used up
  };
  How how = How::answered;
  std::string message;              ///< For people; empty: nothing more to say.
  Millis lasted{};                  ///< Since the client had sent its request whole.
  Millis quiet{};                   ///< Since the last byte went to the client, or since it began.
  bool answer_began = false;        ///< The client had the head of an answer.
  bool client_died = false;         ///< It did not only hang up: its process is gone.
  CancelRequest cancel{};           ///< If it was denied: the cancel.
  std::optional<WallTime> until{};  ///< If it was over a budget: when requests are taken again.
};

/// The call id of all reports about an exchange's request.
[[nodiscard]] inline std::string name_of_request(std::uint64_t exchange) {
  return "request-" + std::to_string(exchange);
}

/// One thing that happened to one exchange; they come in order. A plain value.
struct Observation {
  std::uint64_t exchange = 0;  ///< Rises with each request; never used again.
  WallTime at{};
  std::variant<ExchangeBegan, ExchangeReached, AnswerBegan, AnswerPiece, AnswerSkipped,
               ExchangeEvidence, ExchangeEnded>
      what;
};

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::ExchangeEnded::How> {
  static constexpr std::string_view all[] = {"answered", "client_gone", "refused",
                                             "lost",     "malformed",   "failed",
                                             "stopped",  "denied",      "over_budget"};
};
}  // namespace watchdog
