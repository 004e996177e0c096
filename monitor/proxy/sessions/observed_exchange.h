/// \file
/// A request and its answer, while they pass through the proxy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "judge/text_loop.h"
#include "llm/answer_stream.h"
#include "proxy/sessions/observation.h"
#include "proxy/sessions/spending.h"
#include "watchdog/report.h"

namespace watchdog::monitor {

/// Why an answer is incomplete.
struct ExchangeFault {
  std::string text{};            ///< For people; empty: it is none.
  std::string_view waits_for{};  ///< What the session waits for because of it; empty: nothing.
  bool is_redirect = false;      ///< The server names another address.
};

/// An exchange that is not over. A plain value with a few questions about it.
struct ObservedExchange {
  std::string session;
  std::string server;                 ///< Its URL; empty: unknown.
  std::optional<WallTime> reached{};  ///< When the server accepted it.
  std::uint64_t thread = 0;
  bool final = false;
  std::optional<ProcessFacts> process{};
  bool restarts = false;  ///< The session had ended with its process.
  bool helps = false;     ///< Of a helper: the agent does not wait for the answer.
  Spender spender{};
  std::int64_t request_bytes = 0;  ///< Of its body, as far as it was read.
  bool is_tunnel = false;          ///< A WebSocket: its requests are not known.
  int status = 0;
  bool is_read = true;        ///< The answer can be read, and all of it was.
  std::string coding{};       ///< Of an answer that cannot.
  bool is_stream = false;     ///< Of events, and
  bool has_event = false;     ///< one began: comments are none.
  bool at_line_begin = true;  ///< There the next byte of the stream stands.
  bool waits = false;         ///< The session was reported to wait because of it.
  std::optional<Millis> retry_after{};
  std::optional<WallTime> limit_end{};  ///< As its headers say.
  std::string error_body{};             ///< The beginning, if `status` is an error.
  std::int64_t pieces = 0;
  std::optional<AnswerStream> answer;
  std::unique_ptr<TextLoop> loop;
  int text_repeats = 0;              ///< Reported ones.
  std::optional<Evidence> evidence;  ///< As reported last,
  std::string why;                   ///< with this reason,
  WallTime evidence_at{};            ///< and when.
  WallTime evidence_since{};         ///< When it was reported first.

  /// The answer's head came.
  void begin_answer(const AnswerBegan& began);
  /// A part of the answer's body came. The caller reports repeated text.
  void feed(std::string_view bytes);
  /// Looks for the first event of a stream.
  void find_event(std::string_view bytes);
  /// Tokens of the answer so far; pieces, if nobody counts tokens.
  [[nodiscard]] double tokens() const;
  /// The tokens that it cost, as the server counts. Where the server reports none, four bytes of
  /// the request are a token, and so is each piece of the answer. Nothing of a request that it
  /// refused.
  [[nodiscard]] SpentTokens spent() const;
  /// The part of the answer that was read.
  [[nodiscard]] const ObservedAnswer& heard() const;
  /// Why the answer is not known, as a clause for people.
  [[nodiscard]] std::string why_unread() const;
  [[nodiscard]] ExchangeFault fault(const ExchangeEnded& ended) const;
  /// When the client may try again; nothing: the server does not say it.
  [[nodiscard]] std::optional<WallTime> end_of_wait(std::string_view what, WallTime now) const;
};

}  // namespace watchdog::monitor
